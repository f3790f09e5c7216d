"""The systemd watcher beside a real systemd: every run, in order, with what ended it."""

from __future__ import annotations

import os
import select
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.lab.guest.units import start, systemctl, unit_file

from cgotel.contract import Bookmark, Roots, State, Timeline, Unavailable
from cgotel.evidence import Evidence, Gap, LastWords, RunEnded, RunStarted, UnitResult, UserspaceOom
from cgotel.runtimes.systemd import SystemdSettings, SystemdWatcher
from cgotel.testing import Heard, watched
from cgotel.watching import Watching

pytestmark = pytest.mark.only_on("6.12")

LIMIT_S = 100
GROW = "import time; kept = [bytearray(1 << 20) for _ in range(200)]; time.sleep(100)"
CHILD_GROWS = f"""
import subprocess, sys, time
subprocess.run([sys.executable, "-c", {GROW!r}])
exec(sys.argv[1])
"""


def watcher(bookmark: Bookmark | None = None) -> SystemdWatcher:
    return SystemdWatcher(SystemdSettings(), Roots.discover(), Timeline(), bookmark or Bookmark())


@pytest.fixture(autouse=True)
def bus() -> None:
    systemctl("start", "dbus.socket", "systemd-journald.socket", "dbus.service")
    until_on_the_bus()


def until_on_the_bus() -> None:
    """systemd takes its name some time after the bus has begun; an agent would try again by itself."""
    deadline = time.monotonic() + LIMIT_S
    while True:
        trial = watcher()
        try:
            trial.start()
            return
        except Unavailable:
            assert time.monotonic() < deadline
            time.sleep(0.5)
        finally:
            trial.close()


@pytest.fixture
def heard() -> Iterator[Heard]:
    with watched(watcher()) as heard:
        start("beacon", "sleep", "1000")
        started(heard, "beacon.service")  # so it listens
        try:
            yield heard
        finally:
            systemctl("stop", "beacon.service")
            systemctl("reset-failed", check=False)


def of(unit: str) -> Callable[[Evidence], bool]:
    return lambda e: getattr(e, "workload", None) is not None and e.workload.id == unit  # type: ignore[attr-defined]


def started(heard: Heard, unit: str) -> RunStarted:
    return heard.first(RunStarted, of(unit), LIMIT_S)


def ended(heard: Heard, unit: str) -> RunEnded:
    return heard.first(RunEnded, of(unit), LIMIT_S)


def result(heard: Heard, unit: str) -> UnitResult:
    return heard.first(UnitResult, of(unit), LIMIT_S)


def eventually(true: Callable[[], bool], limit_s: float = LIMIT_S) -> None:
    end = time.monotonic() + limit_s
    while not true():
        assert time.monotonic() < end, "it did not come to be"
        time.sleep(0.05)


def words(heard: Heard, unit: str) -> list[str]:
    """The kinds of what was told of a unit, in order."""
    return [type(piece).__name__ for piece in heard.evidence if of(unit)(piece)]


def test_a_run_that_ends_well(heard: Heard) -> None:
    before = time.time_ns()
    start("well", "sleep", "0.5")
    done = result(heard, "well.service")
    assert words(heard, "well.service") == ["RunStarted", "RunEnded", "UnitResult"]
    begun, end = started(heard, "well.service"), ended(heard, "well.service")
    assert begun.workload.pid == end.workload.pid is not None
    assert begun.workload.cgroup == end.cgroup == "/system.slice/well.service"
    assert before <= begun.time_ns == end.began_ns
    assert end.time_ns - begun.time_ns >= 400_000_000
    assert (end.code, end.signal, end.started, end.error) == (0, None, True, "")
    assert (done.result, done.code, done.signal, done.job, done.restarts) == ("success", 0, None, "", 0)
    assert done.oom_policy == "stop"


def test_an_exit_code(heard: Heard) -> None:
    start("three", "sh", "-c", "exit 3")
    assert (result(heard, "three.service").result, ended(heard, "three.service").code) == ("exit-code", 3)


def test_a_slice_of_its_own_is_in_the_path(heard: Heard) -> None:
    start("sliced", "sleep", "1", Slice="lab-inner.slice")
    assert ended(heard, "sliced.service").cgroup == "/lab.slice/lab-inner.slice/sliced.service"


def test_kill_9(heard: Heard) -> None:
    start("victim", "sleep", "1000")
    pid = started(heard, "victim.service").workload.pid
    assert pid is not None
    os.kill(pid, 9)
    done = result(heard, "victim.service")
    assert (ended(heard, "victim.service").code, ended(heard, "victim.service").signal) == (None, 9)
    assert (done.result, done.signal, done.job) == ("signal", 9, "")


def test_a_segfault(heard: Heard) -> None:
    start("crash", "python3", "-c", "import os; os.kill(os.getpid(), 11)")
    assert ended(heard, "crash.service").signal == 11
    assert result(heard, "crash.service").result in ("core-dump", "signal")


def test_a_stop_that_somebody_asked_for(heard: Heard) -> None:
    start("stopped", "sleep", "1000")
    started(heard, "stopped.service")
    systemctl("stop", "stopped.service")
    done = result(heard, "stopped.service")
    assert (ended(heard, "stopped.service").signal, done.result, done.job) == (15, "success", "stop")


def test_a_stop_that_is_not_obeyed(heard: Heard) -> None:
    deaf = "trap '' TERM; touch /run/deaf; while :; do sleep 1; done"
    start("deaf", "sh", "-c", deaf, TimeoutStopSec="1")
    eventually(Path("/run/deaf").exists)
    systemctl("stop", "deaf.service")
    done = result(heard, "deaf.service")
    assert (ended(heard, "deaf.service").signal, done.result, done.job) == (9, "timeout", "stop")


def test_a_restart_that_somebody_asked_for(heard: Heard) -> None:
    content = "[Service]\nExecStart=sleep 1000\n"
    with unit_file("again.service", content):
        systemctl("start", "again.service")
        started(heard, "again.service")
        systemctl("restart", "again.service")
        eventually(lambda: len(heard.all(RunStarted, of("again.service"))) == 2)
        assert words(heard, "again.service") == ["RunStarted", "RunEnded", "UnitResult", "RunStarted"]
        assert result(heard, "again.service").job == "restart"


@pytest.mark.timeout(400)
def test_three_fast_restarts_are_four_runs(heard: Heard) -> None:
    content = (
        "[Service]\nExecStart=sh -c 'exit 7'\nRestart=on-failure\nRestartSec=0\n[Unit]\nStartLimitBurst=4\n"
    )
    with unit_file("loop.service", content):
        systemctl("start", "loop.service")
        refused = heard.first(RunEnded, lambda e: of("loop.service")(e) and not e.started, LIMIT_S)
        assert words(heard, "loop.service") == ["RunStarted", "RunEnded", "UnitResult"] * 4 + ["RunEnded"]
        begun = heard.all(RunStarted, of("loop.service"))
        ends = heard.all(RunEnded, lambda e: of("loop.service")(e) and e.started)
        assert len({e.workload.pid for e in begun}) == 4
        assert [e.workload.pid for e in begun] == [e.workload.pid for e in ends]
        assert [e.code for e in ends] == [7] * 4
        assert [e.restart_count for e in begun] == [0, 1, 2, 3]
        for begin, end, after in zip(begun, ends, begun[1:], strict=False):
            assert begin.time_ns <= end.time_ns <= after.time_ns
        assert refused.error == "systemd: start-limit-hit"


def test_a_missing_program(heard: Heard) -> None:
    with unit_file("nothing.service", "[Service]\nExecStart=/nonesuch/program\n"):
        systemctl("start", "nothing.service", check=False)
        end = ended(heard, "nothing.service")
        assert (end.started, end.code, end.error) == (False, 203, "systemd: 203/EXEC")
        assert result(heard, "nothing.service").result == "exit-code"


def test_a_start_that_fails_before_the_main_process(heard: Heard) -> None:
    content = "[Service]\nExecStartPre=false\nExecStart=sleep 1000\n"
    with unit_file("early.service", content):
        systemctl("start", "early.service", check=False)
        end = ended(heard, "early.service")
        result(heard, "early.service")
        assert (end.started, end.error) == (False, "systemd: exit-code")
        assert words(heard, "early.service") == ["RunEnded", "UnitResult"]


def test_a_watchdog(heard: Heard) -> None:
    start(
        "dog",
        "sh",
        "-c",
        "systemd-notify --ready; sleep 1000",
        Type="notify",
        NotifyAccess="all",
        WatchdogSec="1",
    )
    done = result(heard, "dog.service")
    assert (ended(heard, "dog.service").signal, done.result, done.signal) == (6, "watchdog", 6)


@pytest.mark.parametrize(("policy", "expected"), [("stop", "oom-kill"), ("kill", "oom-kill")])
def test_an_oom_kill(heard: Heard, policy: str, expected: str) -> None:
    unit = f"eater-{policy}.service"
    start(unit, "python3", "-c", GROW, MemoryMax="48M", MemorySwapMax="0", OOMPolicy=policy)
    done = result(heard, unit)
    assert (done.result, done.oom_policy, ended(heard, unit).signal) == (expected, policy, 9)


def test_an_oom_kill_of_a_child_stops_the_unit(heard: Heard) -> None:
    start(
        "parent", "python3", "-c", CHILD_GROWS, "time.sleep(1000)",
        MemoryMax="64M", MemorySwapMax="0",
    )  # fmt: skip
    done = result(heard, "parent.service")
    assert (done.result, done.job, ended(heard, "parent.service").signal) == ("oom-kill", "", 15)


def test_an_oom_kill_of_a_child_with_policy_continue(heard: Heard) -> None:
    start(
        "carries-on", "python3", "-c", CHILD_GROWS, "sys.exit(4)",
        MemoryMax="64M", MemorySwapMax="0", OOMPolicy="continue",
    )  # fmt: skip
    done = result(heard, "carries-on.service")
    assert (ended(heard, "carries-on.service").code, done.oom_policy) == (4, "continue")


@pytest.mark.timeout(400)
def test_fifty_at_once(heard: Heard) -> None:
    gate = Path("/run/gate")
    os.mkfifo(gate)
    units = [f"many@{n}.service" for n in range(50)]
    content = (
        f"[Service]\nExecStart=sh -c 'read -r go < {gate}; exit 5'\n[Unit]\nCollectMode=inactive-or-failed\n"
    )
    with unit_file("many@.service", content):
        systemctl("start", *units)
        eventually(lambda: all(heard.all(RunStarted, of(unit)) for unit in units), 180)
        gate.write_text("")  # whoever reads it gets the end of it, all at once
        eventually(lambda: all(heard.all(UnitResult, of(unit)) for unit in units), 180)
        for unit in units:
            assert words(heard, unit) == ["RunStarted", "RunEnded", "UnitResult"]
            assert ended(heard, unit).code == 5
    gate.unlink()


def test_a_reload_of_the_daemon_ends_nothing(heard: Heard) -> None:
    start("steady", "sleep", "1000")
    started(heard, "steady.service")
    systemctl("daemon-reload")
    systemctl("daemon-reload")
    start("after", "true")
    ended(heard, "after.service")
    assert words(heard, "steady.service") == ["RunStarted"]
    systemctl("stop", "steady.service")
    assert result(heard, "steady.service").job == "stop"


def test_a_scope_is_a_run(heard: Heard) -> None:
    subprocess.run(["systemd-run", "--quiet", "--scope", "--unit=own", "sleep", "0.5"], check=True)
    end = ended(heard, "own.scope")
    assert (end.code, end.signal, end.cgroup) == (None, None, "/system.slice/own.scope")


def test_a_scope_of_a_container_has_a_result_only(heard: Heard) -> None:
    name = f"docker-{'ab' * 32}.scope"
    subprocess.run(["systemd-run", "--quiet", "--scope", f"--unit={name}", "sleep", "0.5"], check=True)
    result(heard, name)
    assert words(heard, name) == ["UnitResult"]


def test_the_last_words_of_a_unit(heard: Heard) -> None:
    start("spoke", "sh", "-c", "echo before; echo 'MemoryError: x' >&2; exit 1")
    words = heard.first(LastWords, of("spoke.service"), LIMIT_S)
    assert (words.pattern, words.text) == ("python_memory_error", "")
    assert words.time_ns == ended(heard, "spoke.service").time_ns


@pytest.mark.timeout(400)
def test_what_ended_while_nobody_watched(heard: Heard) -> None:
    bookmark = Bookmark()
    with unit_file("unseen.service", "[Service]\nExecStart=sh -c 'exit 6'\n"):
        with watched(watcher(bookmark)) as first:
            started(first, "beacon.service")
            eventually(lambda: bookmark.read() is not None)
        before = time.time_ns()
        systemctl("start", "unseen.service")
        systemctl("start", "unseen.service")
        eventually(lambda: systemctl("is-active", "unseen.service", check=False) == "failed\n")
        with watched(watcher(bookmark)) as second:
            gap = second.first(Gap, timeout_s=LIMIT_S)
            eventually(lambda: len(second.all(RunEnded, of("unseen.service"))) == 2)
            ends = second.all(RunEnded, of("unseen.service"))
            assert [e.code for e in ends] == [6, 6]
            assert all(before <= e.time_ns <= time.time_ns() for e in ends)
            assert gap.since_ns <= before <= gap.time_ns


def test_the_bus_is_restarted() -> None:
    heard = Heard()
    watching = Watching([watcher()], heard.report)
    watching.start(LIMIT_S)
    try:
        start("lasting", "sleep", "1000")
        started(heard, "lasting.service")
        systemctl("kill", "--signal=KILL", "dbus.service")
        gap = heard.first(Gap, timeout_s=LIMIT_S)
        assert gap.source == "systemd"
        start("later", "sh", "-c", "exit 9")
        assert ended(heard, "later.service").code == 9
        assert words(heard, "lasting.service") == ["RunStarted"]
        assert [status.state for status in watching.sources()] == [State.OK, State.OK]
    finally:
        watching.close()
        systemctl("stop", "lasting.service")


def test_a_forged_signal_is_not_believed() -> None:
    own = watcher()
    with watched(own) as heard:
        start("honest", "sleep", "1000")
        started(heard, "honest.service")
        assert own._listener is not None
        assert own._listener._bus is not None
        assert own._listener._bus._bus is not None
        us = own._listener._bus._bus.unique_name
        sent = (
            "org.freedesktop.oom1.Manager.Killed",
            "string:/system.slice/honest.service",
            "string:memory-used",
        )
        path = "/org/freedesktop/oom1"
        subprocess.run(["dbus-send", "--system", "--type=signal", f"--dest={us}", path, *sent], check=True)
        systemctl("stop", "honest.service")
        result(heard, "honest.service")  # it was sent before, so it came before
        assert heard.all(UserspaceOom) == []


AS_NOBODY = """
import sys
from cgotel.contract import Bookmark, Roots, Timeline
from cgotel.evidence import RunEnded
from cgotel.runtimes.systemd import SystemdSettings, SystemdWatcher
from cgotel.testing import watched

watcher = SystemdWatcher(SystemdSettings(), Roots.discover(), Timeline(), Bookmark())
with watched(watcher) as heard:
    print("listening", flush=True)
    end = heard.first(RunEnded, lambda e: e.workload.id == "plain.service", 60)
    [journal] = watcher.sources()
    print(end.code, journal.state, journal.remedy)
"""


def test_any_user_may_listen_and_is_told_what_is_missing() -> None:
    with subprocess.Popen(
        ["python3", "-c", AS_NOBODY],
        stdout=subprocess.PIPE,
        text=True,
        user=65534,
        group=65534,
        extra_groups=[],
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "listening\n"
        while child.poll() is None and not select.select([child.stdout], [], [], 1)[0]:
            start("plain", "sh", "-c", "exit 4")
            systemctl("reset-failed", "plain.service", check=False)
        said = child.stdout.read()
    assert said.startswith("4 denied run as root, or as a member of group systemd-journal or adm")
