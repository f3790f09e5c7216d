"""Deaths and their authors, as the kernel tells them: process events and traced signals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.lab.guest.cgroups import Cgroup
from tests.lab.guest.workloads import MIB, Ended

from cgotel.contract import Bookmark, Roots, Timeline
from cgotel.evidence import Gap, OomMark, ProcessExit, Signal
from cgotel.testing import Heard, watched
from cgotel.watchers.processes import Processes, ProcessesConfig
from cgotel.watchers.signals import Signals, SignalsConfig

INSTANCES = Path("/sys/kernel/tracing/instances")
WAIT_S = 60


@dataclass
class Ears:
    """What the two watchers heard."""

    processes: Heard
    signals: Heard

    def exit_of(self, pid: int) -> ProcessExit:
        return self.processes.first(ProcessExit, lambda e: e.pid == pid, WAIT_S)

    def signal_to(self, pid: int, number: int) -> Signal:
        return self.signals.first(Signal, lambda e: e.pid == pid and e.signal == number, WAIT_S)


@pytest.fixture
def ears() -> Iterator[Ears]:
    timeline, roots = Timeline(), Roots.discover()
    with ExitStack() as stack:
        processes = watched(Processes(ProcessesConfig(), roots, timeline, Bookmark()))
        signals = watched(Signals(SignalsConfig(), roots, timeline, Bookmark()))
        yield Ears(stack.enter_context(processes), stack.enter_context(signals))


def test_a_death_outlives_its_cgroup(cgroup: Cgroup, ears: Ears) -> None:
    told = {}
    for number in range(10):
        gone = cgroup.child(f"short{number}")
        script = f"echo $$ > {gone.path}/cgroup.procs; exec sleep 0.05"
        process = subprocess.Popen(["sh", "-c", script])
        process.wait()
        gone.path.rmdir()
        told[process.pid] = gone.name
    ends = {pid: ears.exit_of(pid) for pid in told}
    assert {pid: end.cgroup for pid, end in ends.items()} == told
    assert {(end.code, end.signal, end.comm) for end in ends.values()} == {(0, None, "sleep")}


def test_a_process_that_only_forked_is_found_where_it_went(cgroup: Cgroup, ears: Ears) -> None:
    child = os.fork()
    if child == 0:
        (cgroup.path / "cgroup.procs").write_text("0")
        signal.sigtimedwait((), 2)
        os._exit(7)
    os.waitpid(child, 0)
    end = ears.exit_of(child)
    assert (end.cgroup, end.code) == (cgroup.name, 7)


def test_a_thousand_deaths_and_none_lost(ears: Ears) -> None:
    script = "i=0; while [ $i -lt 1000 ]; do (exit $((i % 256))) & echo $!; wait $!; i=$((i + 1)); done"
    said = subprocess.run(["sh", "-c", script], check=True, capture_output=True, text=True).stdout
    wanted = {int(pid): number % 256 for number, pid in enumerate(said.split())}
    assert len(wanted) == 1000
    ears.exit_of(list(wanted)[-1])
    told = {e.pid: e.code for e in ears.processes.all(ProcessExit) if e.pid in wanted}
    assert told == wanted
    assert len(ears.processes.all(Gap)) == 1  # the time before


def test_a_kill_from_a_shell_names_the_shell(cgroup: Cgroup, ears: Ears) -> None:
    victim = cgroup.spawn()
    shell = subprocess.Popen(
        ["bash", "-c", f"kill -9 {victim.pid}; exec 2>&-; read x"], stdin=subprocess.PIPE
    )
    sent = ears.signal_to(victim.pid, 9)
    end = ears.exit_of(victim.pid)
    shell.communicate()
    assert (sent.code, sent.result, sent.sender_pid, sent.sender_comm) == (0, 0, shell.pid, "bash")
    assert sent.sender_parent.startswith(("python", "pytest"))
    assert sent.cgroup == cgroup.name
    assert sent.sender_cgroup.endswith("/pytest")
    assert (end.signal, end.code, end.core, end.cgroup) == (9, None, False, cgroup.name)
    assert 0 <= end.time_ns - sent.time_ns + sent.uncertainty_ns < 30 * 10**9
    assert end.began_ns < sent.time_ns


def test_an_oom_kill_is_the_kernels_and_the_victim_is_marked(cgroup: Cgroup, ears: Ears) -> None:
    tight = cgroup.child("tight", memory_max="48M", memory_swap_max=0)
    victim = tight.spawn()
    time.sleep(2)  # it moved after its exec: until the next look it is thought where it was
    with pytest.raises(Ended):
        victim.grow(96)
    sent = ears.signal_to(victim.pid, 9)
    mark = ears.signals.first(OomMark, lambda e: e.pid == victim.pid, WAIT_S)
    end = ears.exit_of(victim.pid)
    assert (sent.code, sent.sender_pid) == (128, victim.pid)
    assert 0 <= mark.time_ns - sent.time_ns < 10**9
    assert sent.cgroup in (tight.name, None)
    assert (end.signal, end.cgroup) == (9, tight.name)
    assert end.peak_rss > 24 * MIB


def test_a_shell_that_reports_a_kill_ended_by_itself(ears: Ears) -> None:
    shell = subprocess.Popen(["sh", "-c", "sh -c 'kill -9 $$'; exit $?"])
    assert shell.wait() == 137
    end = ears.exit_of(shell.pid)
    assert (end.code, end.signal) == (137, None)


def test_a_cgroup_killed_at_once_is_told_process_by_process(cgroup: Cgroup, ears: Ears) -> None:
    crowd = cgroup.child("crowd")
    parent = crowd.spawn()
    assert parent.fork(49) == 49
    pids = {int(pid) for pid in crowd.read("cgroup.procs").split()}
    assert len(pids) == 50
    crowd.write("cgroup.kill", 1)
    for pid in pids:
        assert ears.signal_to(pid, 9).sender_pid == os.getpid()
        end = ears.exit_of(pid)
        assert (end.signal, end.cgroup) == (9, crowd.name)


def test_no_instance_outlives_its_watcher() -> None:
    before = set(INSTANCES.iterdir())
    with watched(Signals(SignalsConfig(), Roots.discover(), Timeline(), Bookmark())):
        assert len(set(INSTANCES.iterdir()) - before) == 1
    assert set(INSTANCES.iterdir()) == before


def test_what_a_killed_agent_leaves_the_next_one_removes() -> None:
    agent = (
        "import sys\nfrom cgotel.contract import Bookmark, Roots, Timeline\n"
        "from cgotel.watchers.signals import Signals, SignalsConfig\n"
        "Signals(SignalsConfig(), Roots.discover(), Timeline(), Bookmark()).start()\n"
        "print('started', flush=True)\nsys.stdin.read()\n"
    )
    first = subprocess.Popen([sys.executable, "-c", agent], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert first.stdout.readline() == b"started\n"
    [left] = [path for path in INSTANCES.iterdir() if f"-{first.pid}-" in path.name]
    with watched(Signals(SignalsConfig(), Roots.discover(), Timeline(), Bookmark())):
        assert left.exists()  # its owner lives
    first.kill()
    first.communicate()
    assert left.exists()
    with watched(Signals(SignalsConfig(), Roots.discover(), Timeline(), Bookmark())):
        assert not left.exists()
