"""What is told of cgroups, when, with which times; on real cgroups where those need no controller."""

from __future__ import annotations

import os
import random
import threading
import time
from collections import Counter
from pathlib import Path

import msgspec
import pytest
from tests.unit.kernel.real import open_descriptors, processes
from tests.unit.watchers.cgroup_events.events_tree import Host, events, memory

from cgotel.clock import Clocks, Timeline, clocks
from cgotel.contract import Bookmark, State, Unavailable
from cgotel.evidence import AnyEvidence, CgroupEmptied, Gap, MemoryEvents, PidsEvents
from cgotel.kernel.files import Descriptors
from cgotel.kernel.roots import Roots
from cgotel.testing import Heard, watched
from cgotel.watchers.cgroup_events import CgroupEvents, CgroupEventsConfig

SECOND = 10**9


def of_cgroup(cgroup: Path) -> CgroupEvents:
    return CgroupEvents(CgroupEventsConfig(), Roots(cgroup=str(cgroup)), Timeline(), Bookmark())


def told(heard: Heard, cgroup: str, local: bool = False) -> dict[str, int]:
    total: Counter[str] = Counter()
    for piece in heard.all(MemoryEvents, lambda e: e.cgroup == cgroup and e.local == local):
        total.update(piece.rose)
    return dict(total)


def await_known(watcher: CgroupEvents, path: str) -> None:
    """Until the watcher has opened a cgroup: what ends before that was never there for it."""
    deadline = time.monotonic() + 30
    while not any(member.path == path for member in watcher._members):
        assert time.monotonic() < deadline
        time.sleep(0.001)


def await_told(heard: Heard, cgroup: str, counts: dict[str, int]) -> None:
    deadline = time.monotonic() + 30
    while told(heard, cgroup) != counts:
        assert time.monotonic() < deadline, (told(heard, cgroup), counts)
        time.sleep(0.01)


# Cgroups that come, empty themselves and go


def test_the_end_of_the_last_process_is_told_of_the_cgroup_and_of_those_above(cgroup: Path) -> None:
    with watched(watcher := of_cgroup(cgroup)) as heard:
        (cgroup / "pod/web").mkdir(parents=True)
        await_known(watcher, "/pod/web")
        with processes(cgroup / "pod/web", 2):
            pass
        ended_ns = Timeline().now()
        for path in ("/pod/web", "/pod"):
            piece = heard.first(CgroupEmptied, lambda e, path=path: e.cgroup == path)
            assert not piece.removed
            assert piece.uncertainty_ns <= SECOND
            assert abs(piece.time_ns - ended_ns) < 30 * SECOND
        assert len(heard.all(CgroupEmptied, lambda e: e.cgroup == "/pod/web")) == 1


def test_a_directory_that_goes_is_told_with_all_below_it_children_first(cgroup: Path) -> None:
    (cgroup / "pod/web").mkdir(parents=True)
    with watched(of_cgroup(cgroup)) as heard:
        (cgroup / "pod/web").rmdir()
        (cgroup / "pod").rmdir()
        heard.first(CgroupEmptied, lambda e: e.cgroup == "/pod")
    assert [(e.cgroup, e.removed) for e in heard.all(CgroupEmptied)] == [("/pod/web", True), ("/pod", True)]


def test_processes_that_lived_for_less_than_a_look_have_ended_once(cgroup: Path) -> None:
    with watched(watcher := of_cgroup(cgroup)) as heard:
        for number in range(20):
            (cgroup / f"n{number}").mkdir()
            await_known(watcher, f"/n{number}")
            with processes(cgroup / f"n{number}", 1):
                pass
        for number in range(20):
            heard.first(CgroupEmptied, lambda e, number=number: e.cgroup == f"/n{number}")
    assert Counter(e.cgroup for e in heard.all(CgroupEmptied, lambda e: e.cgroup != "/")) == {
        f"/n{n}": 1 for n in range(20)
    }


def test_an_empty_cgroup_that_was_frozen_has_lost_no_process(cgroup: Path) -> None:
    (cgroup / "web").mkdir()
    with watched(of_cgroup(cgroup)) as heard:
        for text in "1010":
            (cgroup / "web/cgroup.freeze").write_text(text)
        (cgroup / "end").mkdir()
        (cgroup / "end").rmdir()
        heard.first(CgroupEmptied, lambda e: e.cgroup == "/end")
    assert not heard.all(CgroupEmptied, lambda e: e.cgroup == "/web")


def test_a_thousand_that_live_for_no_time_are_all_told_and_nothing_is_kept(cgroup: Path) -> None:
    before = open_descriptors()
    with watched(of_cgroup(cgroup)) as heard:
        for number in range(1000):
            (cgroup / f"n{number}").mkdir()
            (cgroup / f"n{number}").rmdir()
        heard.first(CgroupEmptied, lambda e: e.cgroup == "/n999")
        assert len(open_descriptors() - before) < 8
    assert Counter(e.cgroup for e in heard.all(CgroupEmptied)) == {f"/n{n}": 1 for n in range(1000)}
    assert open_descriptors() <= before


def test_in_any_order_each_end_is_told_once_and_what_is_left_is_known(cgroup: Path) -> None:
    removed: Counter[str] = Counter()

    def churn(seed: int) -> None:
        pick = random.Random(seed)
        top = cgroup / f"t{seed}"
        for _ in range(150):
            inner = top / pick.choice("ab") / "inner"
            inner.mkdir(parents=True, exist_ok=True)
            for path in (inner, *inner.parents[:2]):
                if pick.random() < 0.7 and not any(entry.is_dir() for entry in path.iterdir()):
                    path.rmdir()
                    removed[f"/{path.relative_to(cgroup)}"] += 1

    with watched(watcher := of_cgroup(cgroup)) as heard:
        threads = [threading.Thread(target=churn, args=(seed,)) for seed in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        (cgroup / "end").mkdir()
        (cgroup / "end").rmdir()
        heard.first(CgroupEmptied, lambda e: e.cgroup == "/end")
        left = {f"/{folder.relative_to(cgroup)}" for folder in cgroup.rglob("*") if folder.is_dir()}
        assert {member.path for member in watcher._members} == {"/", *left}
    told_removed = Counter(e.cgroup for e in heard.all(CgroupEmptied) if e.cgroup != "/end")
    assert told_removed.keys() <= removed.keys()
    assert all(told_removed[path] <= count for path, count in removed.items())
    for seed in range(3):  # of those below one that was gone itself before it was looked into nobody hears
        assert told_removed[f"/t{seed}"] == removed[f"/t{seed}"]


def test_a_namesake_is_another_cgroup(cgroup: Path) -> None:
    with watched(watcher := of_cgroup(cgroup)) as heard:
        for _ in range(3):
            (cgroup / "web").mkdir()
            await_known(watcher, "/web")
            with processes(cgroup / "web", 1):
                pass
            heard.first(CgroupEmptied, lambda e: not e.removed)
            heard.evidence.clear()
            (cgroup / "web").rmdir()
            heard.first(CgroupEmptied, lambda e: e.removed)
            heard.evidence.clear()


def test_without_inotify_comings_and_goings_are_found_by_asking(cgroup: Path) -> None:
    watcher = of_cgroup(cgroup)
    watcher.config = CgroupEventsConfig(most_watches=0)
    with watched(watcher) as heard:
        (cgroup / "web").mkdir()
        with processes(cgroup / "web", 2):
            deadline = time.monotonic() + 30
            while not any(m.path == "/web" and m.populated for m in watcher._members):
                assert time.monotonic() < deadline
                time.sleep(0.01)
        emptied = heard.first(CgroupEmptied, lambda e: e.cgroup == "/web")
        (cgroup / "web").rmdir()
        assert heard.first(CgroupEmptied, lambda e: e.removed).cgroup == "/web"
        [status] = [s for s in watcher.sources() if s.name == "cgroup_events.notifications"]
    assert emptied.uncertainty_ns > 0
    assert (status.state, status.remedy[:9]) == (State.FAILED, "sysctl -w")
    assert "every 1 s" in status.reason


# What memory.events counts


def test_counters_at_first_sight_are_no_news_and_a_rise_is(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.cgroup("web", memory_events=memory(max=7, oom_kill=3), memory_events_local=memory(max=7))
    with watched(host.watcher()) as heard:
        host.write("web/memory.events", memory(max=7, oom_kill=5))
        kill = heard.first(MemoryEvents)
    assert heard.evidence == [kill]
    assert (kill.cgroup, kill.rose, kill.local, kill.source) == (
        "/web",
        {"oom_kill": 2},
        False,
        "cgroup_events",
    )
    assert kill.since_ns < kill.time_ns
    assert kill.uncertainty_ns <= min(SECOND, kill.time_ns - kill.since_ns)


def test_reclaim_at_a_limit_is_told_now_and_then_and_a_kill_at_once(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.cgroup("web", memory_events=memory())
    with watched(host.watcher()) as heard:
        for number in range(1, 400):
            host.write("web/memory.events", memory(max=number))
        host.write("web/memory.events", memory(max=400, oom=1))
        assert "oom" in heard.first(MemoryEvents, lambda e: "oom" in e.rose).rose
        host.write("web/memory.events", memory(max=500, oom=1))
        await_told(heard, "/web", {"max": 500, "oom": 1})
        assert len(heard.all(MemoryEvents)) < 100


def test_what_was_held_back_is_told_at_the_end_of_the_watch(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.cgroup("web", memory_events=memory())
    with watched(host.watcher()) as heard:
        host.write("web/memory.events", memory(max=1))
        heard.first(MemoryEvents)
        host.write("web/memory.events", memory(max=2))
        host.cgroup("last")
        host.write("last/cgroup.events", events(populated=0, frozen=0))
    assert told(heard, "/web") in ({"max": 1}, {"max": 2})
    saved = msgspec.msgpack.decode(host.bookmark.read())
    [files] = saved["counts"].values()
    assert files["memory.events"] == told(heard, "/web")


def test_an_end_without_a_rise_says_so_after_the_end(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.cgroup("web", memory_events=memory(max=7), memory_events_local=memory(max=7))
    with watched(host.watcher()) as heard:
        host.write("web/cgroup.events", events(populated=0, frozen=0))
        heard.first(CgroupEmptied)
    [nothing, emptied] = heard.evidence
    assert (nothing.rose, nothing.local, emptied.cgroup) == ({}, False, "/web")
    assert nothing.since_ns < nothing.time_ns == emptied.time_ns
    assert nothing.uncertainty_ns == 0


def test_the_last_that_was_seen_of_a_cgroup_is_told_when_it_is_gone(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.cgroup("web", memory_events=memory())
    with watched(host.watcher()) as heard:
        host.write("web/memory.events", memory(max=1))
        heard.first(MemoryEvents)
        host.write("web/memory.events", memory(max=3))
        time.sleep(0.3)  # long enough to be looked at on most runs; the sum is right on all
        for file in (host.mount / "web").iterdir():
            file.unlink()
        (host.mount / "web").rmdir()
        heard.first(CgroupEmptied, lambda e: e.removed)
    assert told(heard, "/web")["max"] in (1, 3)
    assert all(e.final == (e is not heard.evidence[0]) for e in heard.all(MemoryEvents))


def test_mounted_with_memory_localevents_both_files_are_of_the_cgroup_itself(tmp_path: Path) -> None:
    host = Host(tmp_path, "rw,memory_localevents")
    host.cgroup("web", memory_events=memory(), memory_events_local=memory())
    watcher = host.watcher()
    with watched(watcher) as heard:
        host.write("web/memory.events.local", memory(oom_kill=1))
        host.write("web/memory.events", memory(oom_kill=1))
        assert heard.first(MemoryEvents).local
        states = {status.name: status for status in watcher.sources()}
    assert [piece.rose for piece in heard.all(MemoryEvents)] == [{"oom_kill": 1}]
    assert states["cgroup_events.memory.events"].state is State.OFF
    assert "memory_localevents" in states["cgroup_events.memory.events"].reason


def test_a_controller_that_comes_later_counts_from_zero(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.cgroup("slice")
    (host.mount / "slice/cgroup.subtree_control").write_text("")
    host.cgroup("slice/web")
    with watched(host.watcher()) as heard:
        (host.mount / "slice/web/memory.events").write_text(memory(oom_kill=1))
        host.write("slice/cgroup.subtree_control", "memory\n")
        assert heard.first(MemoryEvents).rose == {"oom_kill": 1}


# What pids.events counts


@pytest.mark.parametrize(
    ("options", "local", "expected"),
    [
        ("rw", False, [(False, False)]),  # before Linux 6.11: where the fork was tried
        ("rw", True, [(True, False), (True, True)]),
        ("rw,pids_localevents", True, [(False, False)]),
    ],
)
def test_whose_forks_were_refused(tmp_path: Path, options: str, local: bool, expected) -> None:
    host = Host(tmp_path, options)
    files = {"pids_events": events(max=2)} | ({"pids_events_local": events(max=2)} if local else {})
    host.cgroup("web", **files)
    with watched(host.watcher()) as heard:
        if local:
            host.write("web/pids.events.local", events(max=5))
        host.write("web/pids.events", events(max=5))
        heard.first(PidsEvents, lambda e: e.local == expected[-1][1])
    total: Counter[tuple[bool, bool]] = Counter()
    for piece in heard.all(PidsEvents):
        total[piece.of_limit, piece.local] += piece.refused
    assert set(total) == set(expected)


# Over a restart


def test_what_rose_meanwhile_is_told_once_with_an_honest_stamp(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.cgroup("web", memory_events=memory(oom_kill=1))
    host.cgroup("idle", memory_events=memory())
    with watched(host.watcher()):
        pass
    host.write("web/memory.events", memory(oom_kill=3))
    host.cgroup("made", memory_events=memory(oom_kill=1))
    with watched(host.watcher()) as heard:
        heard.first(MemoryEvents, lambda e: e.cgroup == "/made")
        heard.first(MemoryEvents, lambda e: e.cgroup == "/web")
    [gap] = heard.all(Gap)
    pieces = {e.cgroup: e for e in heard.all(MemoryEvents)}
    assert {cgroup: e.rose for cgroup, e in pieces.items()} == {
        "/web": {"oom_kill": 2},
        "/made": {"oom_kill": 1},
    }
    for piece in pieces.values():
        assert piece.uncertainty_ns == piece.time_ns - piece.since_ns > 0
        assert piece.since_ns == gap.since_ns
    with watched(host.watcher()) as heard:
        pass
    assert [type(piece) for piece in heard.evidence] == [Gap]


def test_a_stepped_wall_clock_moves_no_time_of_the_run_before(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.cgroup("web", memory_events=memory())
    with watched(host.watcher()):
        pass
    hour = 3600 * SECOND

    def an_hour_ahead() -> Clocks:
        now = clocks()
        return now._replace(wall=now.wall + hour)

    host.write("web/memory.events", memory(oom_kill=1))
    with watched(host.watcher(Timeline(an_hour_ahead))) as heard:
        kill = heard.first(MemoryEvents)
    assert kill.time_ns - kill.since_ns < hour // 2


@pytest.mark.parametrize("change", ["boot", "options", "rubbish", "empty"])
def test_what_was_kept_of_another_boot_or_cannot_be_read_is_no_news(tmp_path: Path, change, caplog) -> None:
    host = Host(tmp_path)
    host.cgroup("web", memory_events=memory())
    with watched(host.watcher()):
        pass
    host.write("web/memory.events", memory(oom_kill=1))
    if change == "boot":
        (host.proc / "sys/kernel/random/boot_id").write_text("another\n")
    elif change == "options":
        (host.proc / "self/mounts").write_text("cgroup2 /cg cgroup2 rw,memory_localevents 0 0\n")
    else:
        host.bookmark.write(b"\xc1\n" if change == "rubbish" else b"")
    with watched(host.watcher()) as heard:
        pass
    assert heard.evidence == []
    assert len(caplog.records) == (change in ("rubbish", "empty"))


# Limits of inotify


def test_beyond_the_share_of_watches_cgroups_are_asked(tmp_path: Path) -> None:
    host = Host(tmp_path, watches=6)
    for name in "abcd":
        host.cgroup(name, memory_events=memory())
    watcher = host.watcher()
    with watched(watcher) as heard:
        for name in "abcd":
            host.write(f"{name}/memory.events", memory(oom_kill=1))
        for name in "abcd":
            heard.first(MemoryEvents, lambda e, name=name: e.cgroup == f"/{name}")
        [status] = [s for s in watcher.sources() if s.name == "cgroup_events.notifications"]
    assert "2 of 5 cgroups are asked every 1 s" in status.reason
    assert len(heard.all(MemoryEvents)) == 4


def test_beyond_the_limit_of_open_files_cgroups_are_asked(tmp_path: Path, monkeypatch) -> None:
    host = Host(tmp_path)
    for name in "abcd":
        host.cgroup(name, memory_events=memory())
    monkeypatch.setattr(Descriptors, "raised", classmethod(lambda cls, wanted: cls(16)))
    watcher = host.watcher()
    with watched(watcher) as heard:
        for name in "abcd":
            host.write(f"{name}/memory.events", memory(oom_kill=1))
        for name in "abcd":
            heard.first(MemoryEvents, lambda e, name=name: e.cgroup == f"/{name}")
        [status] = [s for s in watcher.sources() if s.name == "cgroup_events.notifications"]
    assert status.reason.startswith("the open files limit leaves no descriptors: 3 of 5 cgroups are asked")
    assert "LimitNOFILE" in status.remedy


def test_lost_notices_are_made_up_for_and_told(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.cgroup("web", memory_events=memory(), other="", noise="")
    most = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    watcher, heard, free = host.watcher(), Heard(), threading.Event()

    def slow(piece) -> None:
        heard.report(piece)
        free.wait(60)

    watch = watcher.watch
    watcher.watch = lambda report, stop: watch(slow, stop)
    with watched(watcher):
        host.write("web/memory.events", memory(oom_kill=1))
        heard.first(MemoryEvents)
        with open(host.mount / "web/other", "wb") as a, open(host.mount / "web/noise", "wb") as b:
            for _ in range(most // 2 + 2):
                os.write(a.fileno(), b"1")
                os.write(b.fileno(), b"1")
        host.write("web/memory.events", memory(oom_kill=3))
        free.set()
        gap = heard.first(Gap)
        await_told(heard, "/web", {"oom_kill": 3})
    assert "max_queued_events" in gap.reason


# Bad input


def test_a_name_that_is_no_text_becomes_text(cgroup: Path) -> None:
    with watched(of_cgroup(cgroup)) as heard:
        folder = Path(os.fsdecode(os.fsencode(cgroup) + b"/\xff\x1b[31m"))
        folder.mkdir()
        folder.rmdir()
        piece = heard.first(CgroupEmptied)
    assert piece.cgroup == "/\\xff\x1b[31m"
    assert msgspec.json.decode(msgspec.json.encode(piece), type=AnyEvidence) == piece


@pytest.mark.parametrize(
    "text", ["", "\n", "oom_kill\n", "oom_kill x\noom_kill -1\n", "oom_kill 9", "\0\xff"]
)
def test_a_file_that_says_nothing_readable_tells_nothing(tmp_path: Path, text: str) -> None:
    host = Host(tmp_path)
    host.cgroup("web", memory_events=text)
    with watched(host.watcher()) as heard:
        (host.mount / "web/memory.events").write_text(f"{text}#\n")
        host.write("web/cgroup.events", events(populated=0, frozen=0))
        heard.first(CgroupEmptied)
    assert [piece.rose for piece in heard.all(MemoryEvents)] == [{}]


def test_without_a_hierarchy_it_is_unavailable(tmp_path: Path) -> None:
    for mount, state in ((None, State.ABSENT), (str(tmp_path / "nowhere"), State.ABSENT)):
        watcher = CgroupEvents(CgroupEventsConfig(), Roots(cgroup=mount), Timeline(), Bookmark())
        with pytest.raises(Unavailable) as unavailable:
            watcher.start()
        assert unavailable.value.status.state is state
        watcher.close()
        watcher.close()


def test_a_hierarchy_without_controllers_says_what_it_cannot_tell(cgroup: Path) -> None:
    (cgroup / "web").mkdir()
    watcher = of_cgroup(cgroup)
    with watched(watcher):
        states = {status.name: status.state for status in watcher.sources()}
    if not (cgroup / "web/memory.events").exists():
        assert states["cgroup_events.memory.events"] is State.ABSENT
