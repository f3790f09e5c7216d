"""The kernel_log watcher on the real kernel: what the test caused, no more, when it happened."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.lab.guest.cgroups import Cgroup
from tests.lab.guest.workloads import MIB, Ended, Workload

from cgotel.clock import Timeline
from cgotel.contract import Bookmark
from cgotel.evidence import Fault, ForkRejected, Gap, OomKill
from cgotel.kernel.kmsg import Kmsg, parse
from cgotel.kernel.roots import Roots
from cgotel.testing import Heard, watched
from cgotel.watchers.kernel_log import KernelLog, KernelLogConfig

TIMELINE = Timeline()
EAT_MEMORY = "echo $$ >$0/cgroup.procs && exec tail /dev/zero"
CRASH = "import ctypes; ctypes.string_at(16)"
START = (
    "from cgotel.clock import Timeline; from cgotel.contract import Bookmark, Unavailable\n"
    "from cgotel.kernel.roots import Roots\n"
    "from cgotel.watchers.kernel_log import KernelLog, KernelLogConfig\n"
    "try: KernelLog(KernelLogConfig(), Roots(), Timeline(), Bookmark()).start()\n"
    "except Unavailable as told: print(told.status.state, told.status.reason, told.status.remedy)"
)


@pytest.fixture(autouse=True)
def talkative_killer() -> None:
    """The kernel reports ten kills in five seconds in full, whichever test caused them: let them pass."""
    while len(recent := reports_since(time.monotonic() - 6)) > 2:
        time.sleep(max(0.1, recent[-2] + 6 - time.monotonic()))


def reports_since(stamp_s: float) -> list[float]:
    """When reports of kills began that are not older, in seconds since boot."""
    log = Kmsg.open("/dev/kmsg")
    found = [one.stamp_us / 1e6 for one in map(parse, log.read()) if one and b" invoked oom-" in one.text]
    log.close()
    return [began_s for began_s in found if began_s >= stamp_s]


@contextmanager
def listening(bookmark: Bookmark | None = None, history: bool = False) -> Iterator[Heard]:
    config = KernelLogConfig(history=history)
    with watched(KernelLog(config, Roots.discover(), TIMELINE, bookmark or Bookmark())) as heard:
        yield heard


def outgrow(workload: Workload, mebibytes: int) -> tuple[int, int]:
    """Let it die of its memory; the times between which that happened."""
    began_ns = TIMELINE.now()
    with pytest.raises(Ended) as ended:
        workload.grow(mebibytes)
    assert ended.value.returncode == -signal.SIGKILL
    return began_ns, TIMELINE.now()


def kill_of(heard: Heard, pid: int) -> OomKill:
    return heard.first(OomKill, lambda kill: kill.pid == pid)


def assert_happened_between(kill: OomKill, began_ns: int, ended_ns: int) -> None:
    assert kill.uncertainty_ns <= 10**9
    assert began_ns - kill.uncertainty_ns <= kill.time_ns <= ended_ns + kill.uncertainty_ns


def test_a_kill_at_the_own_limit(cgroup: Cgroup) -> None:
    leaf = cgroup.child("leaf", memory_max="32M", memory_swap_max=0)
    workload = leaf.spawn()
    with listening() as heard:
        span = outgrow(workload, 64)
        kill = kill_of(heard, workload.pid)
    assert (kill.cgroup, kill.limit_cgroup, kill.constraint) == (leaf.name, leaf.name, "memcg")
    assert (kill.trigger_pid, kill.trigger_comm) == (workload.pid, kill.comm)
    assert (kill.usage, kill.limit) == (32 * MIB, 32 * MIB)
    assert 16 * MIB < kill.anon_rss < 48 * MIB
    assert (kill.group, kill.requested) == (False, False)
    assert_happened_between(kill, *span)
    print(
        f"told {(kill.time_ns - span[1]) / 1e6:+.1f} ms from the death, ±{kill.uncertainty_ns / 1e6:.0f} ms"
    )


def test_a_kill_at_the_limit_of_a_parent_and_the_trigger_next_door(cgroup: Cgroup) -> None:
    outer = cgroup.child("outer", memory_max="96M", memory_swap_max=0)
    leaf, sibling = outer.child("leaf"), outer.child("sibling")
    victim, asker = leaf.spawn(), sibling.spawn()
    victim.grow(60)
    with listening() as heard:
        asker.tell("grow", 40)
        kill = kill_of(heard, victim.pid)
    assert (kill.cgroup, kill.limit_cgroup) == (leaf.name, outer.name)
    assert kill.trigger_pid == asker.pid
    assert kill.limit == 96 * MIB


def test_a_whole_group_is_killed(cgroup: Cgroup) -> None:
    leaf = cgroup.child("leaf", memory_max="64M", memory_swap_max=0, memory_oom_group=1)
    others = [leaf.spawn(), leaf.spawn()]
    hog = leaf.spawn()
    with listening() as heard:
        span = outgrow(hog, 128)
        kills = {pid: kill_of(heard, pid) for pid in (hog.pid, others[0].pid, others[1].pid)}
    assert len(heard.all(OomKill)) == 3
    assert {kill.cgroup for kill in kills.values()} == {leaf.name}
    assert {kill.limit_cgroup for kill in kills.values()} == {leaf.name}
    assert [kills[other.pid].group for other in others] == [True, True]
    assert not kills[hog.pid].group
    for kill in kills.values():
        assert_happened_between(kill, *span)


def test_twenty_deaths_at_once(cgroup: Cgroup) -> None:
    """The kernel names the cgroup of the first ten in five seconds; of no one is a wrong one told."""
    leaves = [cgroup.child(f"leaf{n}", memory_max="8M", memory_swap_max=0) for n in range(20)]
    with listening() as heard:
        began_ns = TIMELINE.now()
        eaters = {
            subprocess.Popen(["sh", "-c", EAT_MEMORY, leaf.path], stdout=subprocess.DEVNULL): leaf
            for leaf in leaves
        }
        assert {eater.wait() for eater in eaters} == {-signal.SIGKILL}
        ended_ns = TIMELINE.now()
        for eater, leaf in eaters.items():
            kill = kill_of(heard, eater.pid)
            assert kill.cgroup in (leaf.name, None)
            assert kill.limit_cgroup == kill.cgroup
            assert kill.constraint == "memcg"
            assert_happened_between(kill, began_ns, ended_ns)
        kills = heard.all(OomKill)
    assert len(kills) == 20
    assert sum(kill.cgroup is not None for kill in kills) >= 8
    assert [kill.time_ns for kill in kills] == sorted(kill.time_ns for kill in kills)
    assert heard.all(Gap) == []


def test_somebody_asks_the_kernel_to_kill(cgroup: Cgroup) -> None:
    leaf = cgroup.child("leaf")
    workload = leaf.spawn()
    Path(f"/proc/{workload.pid}/oom_score_adj").write_text("1000")
    with listening() as heard:
        Path("/proc/sysrq-trigger").write_text("f")
        kill = kill_of(heard, workload.pid)
    assert kill.requested
    assert (kill.cgroup, kill.limit_cgroup, kill.constraint) == (leaf.name, None, "none")
    assert kill.oom_score_adj == 1000


def test_what_happened_while_nobody_looked_is_told_once(cgroup: Cgroup) -> None:
    leaf = cgroup.child("leaf", memory_max="32M", memory_swap_max=0)
    first, second = leaf.spawn(), leaf.spawn()
    bookmark = Bookmark()
    with listening(bookmark) as heard:
        outgrow(first, 64)
        kill_of(heard, first.pid)
    span = outgrow(second, 64)
    with listening(bookmark) as heard:
        kill = kill_of(heard, second.pid)
    assert (kill.cgroup, kill.trigger_pid) == (leaf.name, second.pid)
    assert_happened_between(kill, *span)
    assert [kill.pid for kill in heard.all(OomKill)] == [second.pid]
    assert heard.all(Gap) == []
    with listening(bookmark) as heard:
        third = leaf.spawn()
        outgrow(third, 64)
        kill_of(heard, third.pid)
    assert [kill.pid for kill in heard.all(OomKill)] == [third.pid]


def test_the_whole_ring_is_told_to_one_who_asks_for_history(cgroup: Cgroup) -> None:
    leaf = cgroup.child("leaf", memory_max="32M", memory_swap_max=0)
    workload = leaf.spawn()
    outgrow(workload, 64)
    with listening(history=True) as heard:
        assert kill_of(heard, workload.pid).cgroup == leaf.name


def test_a_segfault() -> None:
    with listening() as heard:
        crashing = subprocess.Popen([sys.executable, "-c", CRASH])
        assert crashing.wait() == -signal.SIGSEGV
        fault = heard.first(Fault, lambda fault: fault.pid == crashing.pid)
    assert fault.what.startswith("segfault at 10 ")
    assert fault.comm in sys.executable


def test_a_refused_fork(cgroup: Cgroup) -> None:
    leaf = cgroup.child("a,b c", pids_max=4)
    with listening() as heard:
        assert leaf.spawn().fork(10) == 3
        assert heard.first(ForkRejected).cgroup == leaf.name


def test_a_user_is_told_what_is_missing() -> None:
    restricted = Path("/proc/sys/kernel/dmesg_restrict")
    before = restricted.read_text()
    restricted.write_text("1")
    try:
        told = subprocess.run(
            [sys.executable, "-c", START],
            user=65534,
            env=os.environ | {"PYTHONPATH": ":".join(sys.path)},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
    finally:
        restricted.write_text(before)
    assert told.startswith("denied /dev/kmsg: Operation not permitted")
    assert "CAP_SYSLOG" in told
