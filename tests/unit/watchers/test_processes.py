"""Ends of processes through the kernel's own connector, on whatever kernel this is; the lab has the rest."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cgotel.contract import Bookmark, Roots, State, Timeline, Unavailable
from cgotel.evidence import Gap, ProcessExit
from cgotel.kernel import tasks
from cgotel.kernel.proc_events import Overrun, ProcEvents
from cgotel.testing import watched
from cgotel.watchers.processes import Processes, ProcessesConfig
from cgotel.watchers.processes.living import Living

pytestmark = pytest.mark.usefixtures("connector")


def watcher(roots: Roots | None = None, timeline: Timeline | None = None, **config: object) -> Processes:
    return Processes(ProcessesConfig(**config), roots or Roots(), timeline or Timeline(), Bookmark())


@pytest.mark.parametrize(
    ("script", "code", "number"),
    [
        ("exit 0", 0, None),
        ("exit 137", 137, None),  # what a shell says when its child was killed
        ("kill -9 $$", None, 9),
        ("kill -15 $$", None, 15),
    ],
)
def test_an_exit_code_is_no_signal(script: str, code: int | None, number: int | None) -> None:
    with watched(watcher()) as heard:
        process = subprocess.Popen(["bash", "-c", script])
        process.wait()
        end = heard.first(ProcessExit, lambda e: e.pid == process.pid)
    assert (end.code, end.signal, end.core) == (code, number, False)
    assert (end.comm, end.parent_pid, end.source) == ("bash", os.getpid(), "processes")


def test_the_times_are_on_the_timeline() -> None:
    timeline = Timeline()
    with watched(watcher(timeline=timeline)) as heard:
        before = timeline.now()
        process = subprocess.Popen(["true"])
        process.wait()
        after = timeline.now()
        end = heard.first(ProcessExit, lambda e: e.pid == process.pid)
    assert end.began_ns is not None
    assert before <= end.began_ns <= end.time_ns <= after


def test_the_peak_is_of_the_dead_process() -> None:
    watching = watcher()
    with watched(watching) as heard:
        states = {part.name: part.state for part in watching.sources()}
        if states["processes.peaks"] is not State.OK:
            pytest.skip("no taskstats here")
        process = subprocess.Popen([sys.executable, "-S", "-c", "bytearray(b'1') * (64 << 20)"])
        process.wait()
        end = heard.first(ProcessExit, lambda e: e.pid == process.pid)
    assert end.peak_rss is not None
    assert 64 << 20 <= end.peak_rss < 256 << 20


def test_peaks_can_be_left_out() -> None:
    with watched(watcher(peaks=False)) as heard:
        process = subprocess.Popen(["true"])
        process.wait()
        assert heard.first(ProcessExit, lambda e: e.pid == process.pid).peak_rss is None


def test_who_lived_before_the_watcher_is_known() -> None:
    process = subprocess.Popen(["sleep", "100"])
    while Path(f"/proc/{process.pid}/comm").read_text() != "sleep\n":
        time.sleep(0.01)
    began_ns = tasks.began_ns("/proc", process.pid)
    timeline = Timeline()
    with watched(watcher(timeline=timeline)) as heard:
        process.terminate()
        end = heard.first(ProcessExit, lambda e: e.pid == process.pid)
    process.wait()
    assert (end.comm, end.signal) == ("sleep", signal.SIGTERM)
    assert end.began_ns == timeline.from_boottime(began_ns)


def test_a_chosen_name_is_the_name_of_the_dead() -> None:
    rename = "open('/proc/self/comm', 'w').write('a b\\n] (x')"
    with watched(watcher()) as heard:
        process = subprocess.Popen([sys.executable, "-S", "-c", rename])
        process.wait()
        assert heard.first(ProcessExit, lambda e: e.pid == process.pid).comm == "a b\n] (x"


def test_a_thread_that_executes_a_program_is_no_end() -> None:
    """The first thread ends and the other takes its pid: Go programs do so (de_thread in fs/exec.c)."""
    script = (
        "import os, threading, time\n"
        "run = threading.Thread(target=os.execvp, args=('sh', ['sh', '-c', 'sleep 1; exit 7']))\n"
        "run.start(); time.sleep(100)\n"
    )
    with watched(watcher()) as heard:
        process = subprocess.Popen([sys.executable, "-S", "-c", script])
        assert process.wait() == 7
        heard.first(ProcessExit, lambda e: e.pid == process.pid and e.code == 7)
        ends = heard.all(ProcessExit, lambda e: e.pid == process.pid)
    assert [(end.code, end.signal, end.comm) for end in ends] == [(7, None, "sh")]


def test_a_first_thread_that_leaves_the_others_is_no_end() -> None:
    script = (
        "import ctypes, threading, time\n"
        "threading.Thread(target=time.sleep, args=(2,)).start()\n"
        "ctypes.CDLL(None).syscall(60, 0)\n"  # exit(2) of this thread alone, on x86-64
    )
    if os.uname().machine != "x86_64":
        pytest.skip("the number of a system call is that of x86-64")
    timeline = Timeline()
    with watched(watcher(timeline=timeline)) as heard:
        began = timeline.now()
        process = subprocess.Popen([sys.executable, "-S", "-c", script])
        process.wait(20)
        end = heard.first(ProcessExit, lambda e: e.pid == process.pid)
        assert len(heard.all(ProcessExit, lambda e: e.pid == process.pid)) == 1
    assert end.time_ns + end.uncertainty_ns - began > 1.5 * 10**9
    assert end.code is None  # whose status it was, the connector does not say


def test_many_threads_that_end_together_are_one_end() -> None:
    script = (
        "import os, threading, time\n"
        "[threading.Thread(target=time.sleep, args=(100,)).start() for _ in range(30)]\n"
        "os.kill(os.getpid(), 9)\n"
    )
    with watched(watcher()) as heard:
        process = subprocess.Popen([sys.executable, "-S", "-c", script])
        process.wait()
        end = heard.first(ProcessExit, lambda e: e.pid == process.pid)
        assert len(heard.all(ProcessExit, lambda e: e.pid == process.pid)) == 1
    assert (end.signal, end.code) == (9, None)


def test_lost_events_are_a_gap_and_the_living_are_learnt_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    read = ProcEvents.read
    lost: list[object] = [Overrun()]

    def overrun(events: ProcEvents) -> list[object]:
        happened: list[object] = [*lost, *read(events)]
        lost.clear()
        return happened

    process = subprocess.Popen(["sleep", "100"])
    monkeypatch.setattr(ProcEvents, "read", overrun)
    with watched(watcher()) as heard:
        subprocess.run(["true"], check=True)
        gap = heard.first(Gap, lambda e: "lost" in e.reason)
        process.kill()
        end = heard.first(ProcessExit, lambda e: e.pid == process.pid)
    process.wait()
    assert gap.since_ns <= gap.time_ns
    assert end.comm == "sleep"


def test_a_socket_that_is_not_read_overruns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cgotel.kernel.proc_events._BUFFER_BYTES", 4096)
    events = ProcEvents()
    try:
        for _ in range(100):
            subprocess.run(["true"], check=True)
        assert Overrun() in events.read()
    finally:
        events.close()


def test_silence_in_another_pid_namespace_is_told() -> None:
    if shutil.which("unshare") is None or os.geteuid() != 0:
        pytest.skip("needs root and unshare")
    others = ProcEvents()  # so that there are events, but no answer
    try:
        assert _told_inside("--pid", "--fork", "--mount-proc") == "masked"
    finally:
        others.close()


def test_another_network_namespace_is_told() -> None:
    if shutil.which("unshare") is None or os.geteuid() != 0:
        pytest.skip("needs root and unshare")
    assert _told_inside("--net") == "absent"


def _told_inside(*namespaces: str) -> str:
    script = (
        "from cgotel.contract import *\nfrom cgotel.watchers.processes import *\n"
        "try:\n    Processes(ProcessesConfig(), Roots(), Timeline(), Bookmark()).start()\n"
        "except Unavailable as e:\n    assert e.status.remedy\n    print(e.status.state)\n"
    )
    command = ["unshare", *namespaces, sys.executable, "-c", script]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout.strip()


def test_a_pid_that_is_given_again_begins_a_new_life() -> None:
    living = Living(None, Timeline())
    living.came(5, 1, 0, 100)
    living.renamed(5, b"old")
    living.came(5, 1, 10, 200)
    life = living.ended(5)
    assert (life.began_ns, life.comm) == (200, "")


def test_the_table_of_the_living_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cgotel.watchers.processes.living._MOST", 10)
    living = Living(None, Timeline())
    for pid in range(1, 100):
        living.came(pid, 1, 0, 0)
    assert len(living) == 10


def test_not_permitted_is_told_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: ProcEvents) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(ProcEvents, "__init__", refuse)
    with pytest.raises(Unavailable) as told:
        watcher().start()
    assert told.value.status.state is State.DENIED
    assert "root" in told.value.status.remedy


def test_a_fork_bomb_does_not_take_the_processor() -> None:
    """More than can be read is rested from, and what comes afterwards is seen."""
    bomb = "i=0; while [ $i -lt 3000 ]; do (:); i=$((i + 1)); done"
    with watched(watcher()) as heard:
        subprocess.run(["sh", "-c", bomb], check=True)
        process = subprocess.Popen(["sh", "-c", "exit 99"])
        process.wait()
        heard.first(ProcessExit, lambda e: e.pid == process.pid and e.code == 99)
        assert len(heard.all(ProcessExit)) > 3000
        assert not heard.all(Gap, lambda e: "lost" in e.reason)
