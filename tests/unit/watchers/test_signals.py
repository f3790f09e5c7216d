"""Signals through the kernel's own tracing, on whatever kernel this is; the lab has the rest."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cgotel.contract import Bookmark, Roots, State, Timeline, Unavailable
from cgotel.evidence import Gap, Signal
from cgotel.kernel.tracefs import TraceInstance
from cgotel.testing import watched
from cgotel.watchers import signals
from cgotel.watchers.signals import Signals, SignalsConfig

MARK = {"oom/mark_victim": None}


def watcher(roots: Roots, bookmark: Bookmark | None = None, **config: object) -> Signals:
    return Signals(SignalsConfig(**config), roots, Timeline(), bookmark or Bookmark())


def instances(roots: Roots) -> list[str]:
    return [
        name for name in os.listdir(f"{roots.sys}/kernel/tracing/instances") if name.startswith("cgotel-")
    ]


def test_a_kill_names_the_shell_and_its_parent(tracing: Roots) -> None:
    victim = subprocess.Popen(["sleep", "100"])
    with watched(watcher(tracing)) as heard:
        shell = subprocess.Popen(["bash", "-c", f"kill -9 {victim.pid}; read x"], stdin=subprocess.PIPE)
        sent = heard.first(Signal, lambda e: e.pid == victim.pid)
        shell.communicate()
    assert victim.wait() == -signal.SIGKILL
    assert (sent.signal, sent.code, sent.result) == (9, 0, 0)
    assert (sent.sender_pid, sent.sender_comm) == (shell.pid, "bash")
    assert sent.sender_parent == Path("/proc/self/comm").read_text().rstrip("\n")
    assert sent.source == "signals"


def test_other_signals_are_not_told(tracing: Roots) -> None:
    victim = subprocess.Popen(["sleep", "100"])
    with watched(watcher(tracing)) as heard:
        victim.send_signal(signal.SIGWINCH)
        victim.send_signal(signal.SIGTERM)
        heard.first(Signal, lambda e: e.pid == victim.pid)
        told = [e.signal for e in heard.all(Signal) if e.pid == victim.pid]
    victim.wait()
    assert told == [signal.SIGTERM]


def test_the_stamp_is_on_the_timeline(tracing: Roots) -> None:
    victim = subprocess.Popen(["sleep", "100"])
    timeline = Timeline()
    with watched(Signals(SignalsConfig(), tracing, timeline, Bookmark())) as heard:
        before = timeline.now()
        victim.kill()
        after = timeline.now()
        sent = heard.first(Signal, lambda e: e.pid == victim.pid)
    victim.wait()
    assert before - sent.uncertainty_ns <= sent.time_ns <= after + sent.uncertainty_ns


def test_a_thread_that_signals_is_named_by_its_process(tracing: Roots) -> None:
    victim = subprocess.Popen(["sleep", "100"])
    kill = (
        "import os, sys, threading\n"
        f"thread = threading.Thread(target=os.kill, args=({victim.pid}, 9))\n"
        "thread.start(); thread.join(); sys.stdin.read()\n"
    )
    with watched(watcher(tracing)) as heard:
        killer = subprocess.Popen([sys.executable, "-c", kill], stdin=subprocess.PIPE)
        sent = heard.first(Signal, lambda e: e.pid == victim.pid)
        killer.communicate()
    victim.wait()
    assert sent.sender_pid in (killer.pid, killer.pid + 1)  # the thread itself, where it was gone already


def test_the_instance_goes_with_the_watcher(tracing: Roots) -> None:
    with watched(watcher(tracing)):
        assert len(instances(tracing)) == 1
    assert instances(tracing) == []


def test_what_a_dead_agent_left_is_removed_and_what_a_living_one_has_is_not(tracing: Roots) -> None:
    place = f"{tracing.sys}/kernel/tracing"
    make = (
        "import os, sys\nfrom cgotel.kernel.tracefs import TraceInstance\n"
        f"TraceInstance({place!r}, {MARK!r}, 16)\nprint('made', flush=True)\nsys.stdin.read()\n"
    )
    agents = [
        subprocess.Popen([sys.executable, "-c", make], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for _ in range(2)
    ]
    for agent in agents:
        assert agent.stdout.readline() == b"made\n"
    dead, living = agents
    dead.kill()
    dead.communicate()
    assert len(instances(tracing)) == 2
    own = TraceInstance(place, MARK, 16)
    left = instances(tracing)
    own.close()
    living.kill()
    living.communicate()
    assert len(left) == 2
    assert not any(f"-{dead.pid}-" in name for name in left)
    assert any(f"-{living.pid}-" in name for name in left)
    TraceInstance(place, MARK, 16).close()
    assert instances(tracing) == []


def test_an_instance_in_use_is_kept_whatever_its_name_says(tracing: Roots) -> None:
    """Its maker may live in another pid namespace, where it cannot be looked up."""
    place = Path(tracing.sys, "kernel/tracing")
    foreign = place / "instances/cgotel-1-1-1-0"
    foreign.mkdir()
    with open(foreign / "trace_pipe"):
        TraceInstance(str(place), MARK, 16).close()
        assert foreign.exists()
    TraceInstance(str(place), MARK, 16).close()
    assert not foreign.exists()


def test_a_flood_is_a_gap_and_what_comes_after_it_is_seen(
    tracing: Roots, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signals, "_BURST", 100)
    monkeypatch.setattr(signals, "_PAUSE_S", 0.1)
    flood = (
        "import os, signal\nsignal.signal(15, signal.SIG_IGN)\n"
        "for _ in range(20000):\n    os.kill(os.getpid(), 15)\n"
    )
    with watched(watcher(tracing)) as heard:
        flooding = subprocess.Popen([sys.executable, "-c", flood])
        heard.first(Gap, lambda e: "a second" in e.reason)
        flooding.wait()
        victim = subprocess.Popen(["sleep", "100"])
        while not any(e.pid == victim.pid for e in heard.all(Signal)):
            subprocess.run(["kill", "-s", "INT", str(victim.pid)], check=False, stderr=subprocess.DEVNULL)
        victim.wait()
    assert len(heard.all(Signal, lambda e: e.pid == flooding.pid)) < 20000


def test_events_that_the_kernel_dropped_are_a_gap(tracing: Roots) -> None:
    watching = watcher(tracing, buffer=16)
    watching.start()  # nobody reads while more comes than the buffer holds
    flood = (
        "import os, signal\nsignal.signal(15, signal.SIG_IGN)\n"
        "for _ in range(9000):\n    os.kill(os.getpid(), 15)\n"
    )
    subprocess.run([sys.executable, "-c", flood], check=True)
    heard: list[object] = []
    trace = watching._started()
    for _ in range(40):
        watching._hear(trace, heard.append)
    watching.close()
    gaps = [piece for piece in heard if isinstance(piece, Gap)]
    assert any("overwritten" in gap.reason and gap.since_ns <= gap.time_ns for gap in gaps)


def test_the_time_without_an_agent_is_a_gap(tracing: Roots) -> None:
    bookmark = Bookmark()
    with watched(watcher(tracing, bookmark)) as heard:
        unseen = heard.first(Gap)
    assert abs(unseen.since_ns - Timeline().from_boottime(0)) < 10**9  # since the machine was started
    ended = int(bookmark.read() or b"0")
    with watched(watcher(tracing, bookmark)) as heard:
        assert heard.first(Gap).since_ns == ended


def test_no_tracefs_is_told_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(Unavailable) as told:
        watcher(Roots(sys=str(tmp_path))).start()
    assert told.value.status.state is State.MASKED
    assert "mounted" in told.value.status.remedy


def test_tracing_that_is_denied_is_told(tmp_path: Path) -> None:
    place = tmp_path / "kernel/tracing"
    for event in ("signal/signal_generate", "oom/mark_victim"):
        (place / "events" / event).mkdir(parents=True)
        (place / "events" / event / "format").write_text('print fmt: "pid=%d", REC->pid\n')
    (place / "trace_pipe").touch()  # and no instances/ to make one in
    with pytest.raises(Unavailable) as told:
        watcher(Roots(sys=str(tmp_path))).start()
    assert told.value.status.state is State.ABSENT


def test_a_proc_of_another_pid_namespace_is_not_asked(tracing: Roots, tmp_path: Path) -> None:
    (tmp_path / "proc/1/ns").mkdir(parents=True)
    (tmp_path / "proc/1/ns/pid").touch()
    watching = watcher(Roots(proc=str(tmp_path / "proc"), sys=tracing.sys))
    victim = subprocess.Popen(["sleep", "100"])
    with watched(watching) as heard:
        victim.kill()
        sent = heard.first(Signal, lambda e: e.pid == victim.pid)
        assert [part.state for part in watching.sources()] == [State.MASKED]
    victim.wait()
    assert sent.cgroup is None
    assert sent.sender_parent == ""
