"""The cgroup_events watcher on the real kernel: every kill is told, where it was counted, and soon."""

from __future__ import annotations

import os
import resource
import select
import statistics
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
from tests.lab.guest.cgroups import Cgroup
from tests.lab.guest.workloads import Ended, Workload

from cgotel.clock import Timeline
from cgotel.contract import Bookmark, State
from cgotel.evidence import CgroupEmptied, Gap, MemoryEvents, PidsEvents
from cgotel.kernel.roots import Roots
from cgotel.testing import Heard, watched
from cgotel.watchers.cgroup_events import CgroupEvents, CgroupEventsConfig

TIMELINE = Timeline()
SECOND = 10**9
EAT_MEMORY = "echo $$ >$0/cgroup.procs && exec tail /dev/zero"


def watcher(bookmark: Bookmark | None = None, **config: object) -> CgroupEvents:
    return CgroupEvents(CgroupEventsConfig(**config), Roots.discover(), TIMELINE, bookmark or Bookmark())


@contextmanager
def listening(**config: object) -> Iterator[Heard]:
    with watched(watcher(**config)) as heard:
        yield heard


def told(heard: Heard, cgroup: Cgroup, local: bool = False) -> dict[str, int]:
    """All that was told of one of a cgroup's files, together."""
    total: Counter[str] = Counter()
    for piece in heard.all(MemoryEvents, lambda e: e.cgroup == cgroup.name and e.local == local):
        total.update(piece.rose)
    return dict(total)


def counted(cgroup: Cgroup, local: bool = False) -> dict[str, int]:
    """What the kernel says in that file."""
    events = cgroup.flat("memory.events.local" if local else "memory.events")
    return {key: n for key, n in events.items() if n}


def await_kill(heard: Heard, cgroup: Cgroup, local: bool = False) -> MemoryEvents:
    return heard.first(
        MemoryEvents, lambda e: e.cgroup == cgroup.name and e.local == local and "oom_kill" in e.rose
    )


def await_told(heard: Heard, cgroup: Cgroup, local: bool = False) -> None:
    """Until all is told that the kernel counted."""
    deadline = time.monotonic() + 30
    while told(heard, cgroup, local) != counted(cgroup, local):
        assert time.monotonic() < deadline, (told(heard, cgroup, local), counted(cgroup, local))
        time.sleep(0.05)


def outgrow(workload: Workload, mebibytes: int = 64) -> int:
    """Grow beyond the limit, and die of it; when the end was seen."""
    with pytest.raises(Ended) as ended:
        workload.grow(mebibytes)
    assert ended.value.returncode == -9
    return TIMELINE.now()


def test_a_kill_at_the_own_limit(cgroup: Cgroup) -> None:
    leaf = cgroup.child("leaf", memory_max="32M", memory_swap_max=0)
    with listening() as heard:
        ended_ns = outgrow(leaf.spawn())
        kill = await_kill(heard, leaf)
        print(f"oom_kill was told {(kill.time_ns - ended_ns) / 1e6:.1f} ms after the process was reaped")
        assert abs(kill.time_ns - ended_ns) < 5 * SECOND
        assert kill.uncertainty_ns <= SECOND
        for local in (False, True):
            await_told(heard, leaf, local)
            assert told(heard, leaf, local)["oom_kill"] == 1
            assert told(heard, leaf, local)["oom"] >= 1
        await_told(heard, cgroup)
        assert heard.first(CgroupEmptied, lambda e: e.cgroup == leaf.name and not e.removed)


def test_a_kill_at_a_parents_limit_is_counted_apart_from_the_limit(cgroup: Cgroup) -> None:
    with listening() as heard:
        outer = cgroup.child("outer", memory_max="32M", memory_swap_max=0)
        inner = outer.child("inner")
        outgrow(inner.spawn())
        await_kill(heard, inner)
        await_kill(heard, outer)
        for one in (inner, outer):
            for local in (False, True):
                await_told(heard, one, local)
        assert told(heard, inner) == told(heard, inner, local=True) == {"oom_kill": 1}
        assert "oom_kill" not in told(heard, outer, local=True)
        assert told(heard, outer, local=True)["oom"] >= 1
        assert told(heard, outer)["oom_kill"] == 1
        for piece in heard.evidence:
            print(msgspec.json.encode(piece).decode())


def test_a_group_kill(cgroup: Cgroup) -> None:
    with listening() as heard:
        leaf = cgroup.child("leaf", memory_max="48M", memory_swap_max=0, memory_oom_group=1)
        *_, last = [leaf.spawn() for _ in range(3)]
        outgrow(last, 96)
        await_kill(heard, leaf)
        await_told(heard, leaf)
        assert told(heard, leaf)["oom_kill"] >= 3  # the kernel counts the chosen one twice
        assert told(heard, leaf)["oom_group_kill"] == 1


def test_an_end_without_a_kill_says_that_nothing_was_counted(cgroup: Cgroup) -> None:
    leaf = cgroup.child("leaf")
    with listening() as heard:
        leaf.spawn().reap()
        end = heard.first(CgroupEmptied, lambda e: e.cgroup == leaf.name)
        [last] = heard.all(MemoryEvents, lambda e: e.cgroup == leaf.name)
        assert last.rose == {}
        assert last.since_ns < last.time_ns <= end.time_ns


@pytest.mark.kernel_file("pids.events.local", since="6.11")
def test_refused_forks_are_counted_where_the_limit_is(cgroup: Cgroup) -> None:
    with listening() as heard:
        outer = cgroup.child("outer", pids_max=4)
        inner = outer.child("inner")
        assert inner.spawn().fork(8) < 8
        own = heard.first(PidsEvents, lambda e: e.cgroup == outer.name and e.local)
        assert own.of_limit
        assert heard.first(PidsEvents, lambda e: e.cgroup == outer.name and not e.local).of_limit
        assert heard.first(PidsEvents, lambda e: e.cgroup == cgroup.name).refused >= 1
        assert not heard.all(PidsEvents, lambda e: e.cgroup == inner.name)


def test_refused_forks_of_an_own_limit(cgroup: Cgroup) -> None:
    with listening() as heard:
        leaf = cgroup.child("leaf", pids_max=3)
        assert leaf.spawn().fork(8) < 8
        refused = heard.first(PidsEvents, lambda e: e.cgroup == leaf.name)
        assert refused.refused >= 1
        local = (leaf.path / "pids.events.local").exists()
        assert refused.of_limit == local
        assert bool(heard.all(PidsEvents, lambda e: e.cgroup == cgroup.name)) <= local


class Undertaker:
    """Removes each cgroup at the very moment its process ends, and notes when that was."""

    def __init__(self, count: int) -> None:
        self.removed_ns: dict[str, int] = {}
        self._ends = select.epoll()
        self._dying: dict[int, tuple[Cgroup, subprocess.Popen[bytes]]] = {}
        self._thread = threading.Thread(target=self._work, args=(count,))
        self._thread.start()

    def kill_in(self, cgroup: Cgroup) -> None:
        """Let a process outgrow the limit of a cgroup."""
        process = subprocess.Popen(["sh", "-c", EAT_MEMORY, cgroup.path], stderr=subprocess.DEVNULL)
        pidfd = os.pidfd_open(process.pid)
        self._dying[pidfd] = (cgroup, process)
        self._ends.register(pidfd, select.EPOLLIN)

    def wait(self) -> None:
        """Until all have been removed."""
        self._thread.join(200)
        assert not self._thread.is_alive()
        self._ends.close()

    def _work(self, count: int) -> None:
        while len(self.removed_ns) < count:
            for pidfd, _ in self._ends.poll():
                ended_ns = TIMELINE.now()
                self._ends.unregister(pidfd)  # a child on its way to exec holds a copy, which keeps it there
                cgroup, process = self._dying.pop(pidfd)
                process.wait()
                cgroup.path.rmdir()
                os.close(pidfd)
                self.removed_ns[cgroup.name] = ended_ns


@pytest.mark.timeout(300)
def test_200_that_are_killed_and_removed_at_once_are_all_counted(cgroup: Cgroup) -> None:
    count = 200
    with listening() as heard:
        undertaker = Undertaker(count)
        for number in range(count):
            undertaker.kill_in(cgroup.child(f"c{number}", memory_max="2M", memory_swap_max=0))
        undertaker.wait()
        await_told(heard, cgroup)
        assert told(heard, cgroup)["oom_kill"] == counted(cgroup)["oom_kill"] == count
        for name in undertaker.removed_ns:
            heard.first(CgroupEmptied, lambda e, name=name: e.cgroup == name and e.removed)
        read = {e.cgroup: e for e in heard.all(MemoryEvents, lambda e: "oom_kill" in e.rose)}
        delays = [(read[n].time_ns - ended) / 1e6 for n, ended in undertaker.removed_ns.items() if n in read]
        print(f"{len(delays)} of {count} were read before they were gone; ms from the end of the process:")
        if delays:
            print(f"median {statistics.median(delays):.1f}, longest {max(delays):.1f}")


def test_what_rose_while_the_agent_was_down(cgroup: Cgroup) -> None:
    bookmark = Bookmark()
    known = cgroup.child("known", memory_max="32M", memory_swap_max=0)
    main = known.spawn()
    with watched(watcher(bookmark)) as heard:
        outgrow(known.spawn())
        await_kill(heard, known)
        await_told(heard, known)
    stopped_ns = TIMELINE.now()
    outgrow(known.spawn())
    made_meanwhile = cgroup.child("made", memory_max="32M", memory_swap_max=0)
    outgrow(made_meanwhile.spawn())
    with watched(watcher(bookmark)) as heard:
        for one in (known, made_meanwhile):
            kill = await_kill(heard, one)
            assert kill.rose["oom_kill"] == 1
            assert kill.since_ns <= stopped_ns < kill.time_ns
            assert kill.uncertainty_ns == kill.time_ns - kill.since_ns
        assert heard.first(Gap).since_ns <= stopped_ns
        outgrow(known.spawn())
        again = heard.first(
            MemoryEvents,
            lambda e: e.cgroup == known.name and "oom_kill" in e.rose and e.uncertainty_ns < SECOND,
        )
        assert again.rose["oom_kill"] == 1
    main.reap()


def test_without_inotify_all_are_asked(cgroup: Cgroup) -> None:
    asking = watcher(most_watches=0)
    with watched(asking) as heard:
        leaf = cgroup.child("leaf", memory_max="32M", memory_swap_max=0)
        status = next(status for status in asking.sources() if status.name.endswith("notifications"))
        assert status.state is State.FAILED
        assert "max_user_watches" in status.reason
        outgrow(leaf.spawn())
        kill = await_kill(heard, leaf)
        assert kill.since_ns < kill.time_ns
        assert kill.uncertainty_ns == kill.time_ns - kill.since_ns
        await_told(heard, leaf)


def test_a_controller_that_comes_later_is_heard(cgroup: Cgroup) -> None:
    with listening() as heard:
        middle = cgroup.child("middle")
        path = middle.path / "leaf"
        path.mkdir()
        leaf = Cgroup(path)
        assert not (path / "memory.events").exists()
        middle.enable()
        leaf.write("memory.max", "32M")
        leaf.write("memory.swap.max", 0)
        workload = Workload(path)
        outgrow(workload)
        await_kill(heard, leaf)
        await_told(heard, leaf)
        workload.reap()


@pytest.mark.timeout(300)
def test_what_a_cgroup_costs(cgroup: Cgroup) -> None:
    count = 500
    cgroup.enable()
    with listening() as heard:
        before = _resident(), _slab(), len(os.listdir("/proc/self/fd"))
        for n in range(count):
            (cgroup.path / f"n{n}").mkdir()
        heard.evidence.clear()
        (cgroup.path / f"n{count - 1}").rmdir()
        heard.first(CgroupEmptied, lambda e: e.cgroup == f"{cgroup.name}/n{count - 1}")
        after = _resident(), _slab(), len(os.listdir("/proc/self/fd"))
        resident, kernel, descriptors = ((b - a) / count for a, b in zip(before, after, strict=True))
        print(
            f"a cgroup costs {resident:.0f} bytes, {kernel:.0f} in the kernel, {descriptors:.1f} descriptors"
        )
        assert resident < 10_000
        for n in range(count - 1):
            (cgroup.path / f"n{n}").rmdir()
        heard.first(CgroupEmptied, lambda e: e.cgroup == f"{cgroup.name}/n{count - 2}")
        cpu_before = resource.getrusage(resource.RUSAGE_SELF)
        rounds = 300
        for n in range(rounds):
            (cgroup.path / f"r{n}").mkdir()
            (cgroup.path / f"r{n}").rmdir()
            heard.evidence.clear()
        (cgroup.path / "end").mkdir()
        (cgroup.path / "end").rmdir()
        heard.first(CgroupEmptied, lambda e: e.cgroup == f"{cgroup.name}/end")
        cpu = resource.getrusage(resource.RUSAGE_SELF)
        user = (cpu.ru_utime - cpu_before.ru_utime) / rounds
        print(
            f"one that comes and goes costs at most {user * 1e3:.2f} ms of user time, the test's own included"
        )
        assert len(os.listdir("/proc/self/fd")) <= before[2] + 8


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _slab() -> int:
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("Slab:"))
