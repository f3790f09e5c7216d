"""The watchers beside a real Docker and a real Podman: what each does, and what is told of it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.lab.guest.engines import IMAGE, NEXT_IMAGE, Engine, engine

from cgotel.contract import Bookmark, Roots, Timeline, Unavailable
from cgotel.evidence import Gap, LastWords, ProbeResult, RunEnded, RunStarted, RuntimeAction, RuntimeState
from cgotel.runtimes.docker import DockerWatcher
from cgotel.runtimes.engine.watcher import EngineWatcher
from cgotel.runtimes.podman import PodmanWatcher
from cgotel.testing import Heard, watched

LIMIT_S = 180
S = 10**9
pytestmark = [pytest.mark.timeout(400), pytest.mark.only_on("6.12")]
KINDS: dict[str, type[EngineWatcher]] = {"docker": DockerWatcher, "podman": PodmanWatcher}


@pytest.fixture(scope="module", params=["docker", "podman"])
def running(request: pytest.FixtureRequest) -> Iterator[Engine]:
    with engine(request.param) as running:
        yield running


def watcher(running: Engine, bookmark: Bookmark | None = None) -> EngineWatcher:
    kind = KINDS[running.name]
    return kind(kind.Config(), Roots.discover(), Timeline(), bookmark or Bookmark())


@pytest.fixture
def heard(running: Engine) -> Iterator[Heard]:
    with watched(watcher(running), stop_timeout_s=LIMIT_S) as heard:
        beacon(running, heard, "listening")
        yield heard


def beacon(running: Engine, heard: Heard, name: str) -> None:
    """Make something, and wait until it is told: so all before it was."""
    running("create", "--name", name, IMAGE, "true")
    heard.first(RuntimeAction, lambda e: e.workload.name == name and e.action == "create", LIMIT_S)
    running("rm", name)


def of(heard: Heard, kind, name: str):
    return heard.first(kind, lambda e: e.workload.name == name, LIMIT_S)


def actions(heard: Heard, name: str) -> list[str]:
    return [
        getattr(e, "action", type(e).__name__)
        for e in heard.evidence
        if isinstance(e, RuntimeAction | RunEnded) and e.workload.name == name
    ]


def test_a_run_is_told_from_its_beginning_to_its_end(running: Engine, heard: Heard) -> None:
    script = "sleep 2; echo 'RuntimeError: CUDA error: out of memory' >&2; exit 3"
    began = time.time_ns()
    running.run("plain", "sh", "-c", script)
    start = of(heard, RunStarted, "plain")
    assert start.cgroup is not None
    assert start.workload.pid is not None
    members = Path(f"/sys/fs/cgroup{start.cgroup}").rglob("cgroup.procs")
    assert str(start.workload.pid) in [pid for file in members for pid in file.read_text().split()]
    assert start.workload.image == IMAGE
    assert start.workload.image_id.startswith("sha256:")
    end, state, words = (of(heard, kind, "plain") for kind in (RunEnded, RuntimeState, LastWords))
    assert (end.code, end.started, end.signal) == (3, True, None)
    assert (end.began_ns, end.cgroup) == (start.time_ns, start.cgroup)
    assert began < start.time_ns < end.time_ns < time.time_ns()
    assert end.time_ns - start.time_ns > 1.9 * S
    assert (state.code, state.oom_killed) == (3, False)
    assert (words.pattern, words.text) == ("cuda_error_out_of_memory", "")


def test_a_container_that_removes_itself_has_its_end(running: Engine, heard: Heard) -> None:
    running.run("quick", "sh", "-c", "exit 4", options=("--rm",))
    end = of(heard, RunEnded, "quick")
    assert (end.code, end.started) == (4, True)
    assert end.cgroup is not None
    assert end.cgroup.endswith(f"{end.workload.id}.scope")


def test_a_stop_that_is_not_obeyed(running: Engine, heard: Heard) -> None:
    running.run("deaf", "sh", "-c", "trap '' TERM; while :; do sleep 1; done")
    of(heard, RunStarted, "deaf")
    asked = time.time_ns()
    running("stop", "-t", "1", "deaf")
    end = of(heard, RunEnded, "deaf")
    beacon(running, heard, "after-stop")
    assert end.code == 137
    assert end.time_ns > asked + 0.9 * S
    if running.name == "docker":
        kills = heard.all(RuntimeAction, lambda e: e.workload.name == "deaf" and e.action == "kill")
        assert [e.signal for e in kills] == [15, 9]
        assert sorted(actions(heard, "deaf")[-2:]) == ["RunEnded", "stop"]


def test_a_start_that_failed(running: Engine, heard: Heard) -> None:
    running.run("miss", "/no/such/program", fails=True)
    end = of(heard, RunEnded, "miss")
    assert not end.started
    assert end.began_ns is None
    if running.name == "docker":
        assert end.code == 127
        assert "/no/such/program" in end.error
    beacon(running, heard, "after-miss")
    assert not heard.all(RunStarted, lambda e: e.workload.name == "miss")
    assert len(heard.all(RunEnded, lambda e: e.workload.name == "miss")) == 1


def test_killed_for_memory(running: Engine, heard: Heard) -> None:
    """Docker says so. Podman's flag depends on conmon's luck, so that nothing is asked of it."""
    running.run("fat", "sh", "-c", "sleep 1; tail /dev/zero", options=("--memory", "24m"))
    end, state = of(heard, RunEnded, "fat"), of(heard, RuntimeState, "fat")
    assert (end.code, state.code) == (137, 137)
    if running.name == "docker":
        assert state.oom_killed is True
        heard.first(RuntimeAction, lambda e: e.workload.name == "fat" and e.action == "oom", LIMIT_S)


def test_restarts_by_policy_are_runs_of_their_own(running: Engine, heard: Heard) -> None:
    running.run("loop", "sh", "-c", "sleep 1; exit 5", options=("--restart", "on-failure:1"))
    heard.first(
        RunEnded, lambda e: len(heard.all(RunEnded, lambda e: e.workload.name == "loop")) == 2, LIMIT_S
    )
    beacon(running, heard, "after-loop")
    starts = heard.all(RunStarted, lambda e: e.workload.name == "loop")
    ends = heard.all(RunEnded, lambda e: e.workload.name == "loop")
    assert [e.code for e in ends] == [5, 5]
    assert [e.began_ns for e in ends] == [e.time_ns for e in starts]
    assert [e.restart_count for e in starts] == [0, 1]
    assert {e.restart_policy for e in heard.all(RuntimeState, lambda e: e.workload.name == "loop")} == {
        "on-failure"
    }


def test_renamed_and_redeployed_with_another_image(running: Engine, heard: Heard) -> None:
    running.run("blue", "sleep", "1000")
    of(heard, RunStarted, "blue")
    running("rename", "blue", "old-blue")
    heard.first(RuntimeAction, lambda e: e.action == "rename" and e.workload.name == "old-blue", LIMIT_S)
    running("rm", "-f", "old-blue")
    running("run", "-d", "--name", "blue", "--network", "none", NEXT_IMAGE, "sleep", "1000")
    again = heard.first(RunStarted, lambda e: e.workload.image == NEXT_IMAGE, LIMIT_S)
    first = of(heard, RunStarted, "blue")
    end = of(heard, RunEnded, "old-blue")
    assert end.workload.id == first.workload.id != again.workload.id
    assert again.workload.image_id != first.workload.image_id
    assert again.workload.name == "blue"
    running("rm", "-f", "blue")


def test_probes_are_told_with_how_long_they_took(running: Engine, heard: Heard) -> None:
    options = ("--health-cmd", "sleep 0.5; exit 1", "--health-interval", "1s", "--health-retries", "2")
    running.run("ill", "sleep", "1000", options=options)
    probe = heard.first(ProbeResult, lambda e: e.workload.name == "ill" and e.failures == 2, LIMIT_S)
    assert not probe.ok
    assert probe.threshold == 2
    assert probe.latency_s is not None
    assert 0.4 < probe.latency_s < 60
    probes = heard.all(ProbeResult, lambda e: e.workload.name == "ill")
    assert len({e.time_ns for e in probes}) == len(probes)
    running("rm", "-f", "ill")


def test_what_happened_while_nobody_looked(running: Engine) -> None:
    bookmark = Bookmark()
    with watched(watcher(running, bookmark), stop_timeout_s=LIMIT_S) as heard:
        beacon(running, heard, "before")
        running.run("unseen", "sh", "-c", "trap 'exit 6' TERM; while :; do sleep 0.1; done")
        of(heard, RunStarted, "unseen")
        beacon(running, heard, "seen")
    asked = time.time_ns()
    running("stop", "-t", "100", "unseen")
    stopped = time.time_ns()
    running.run("brief", "sh", "-c", "exit 7")
    running("wait", "brief")
    with watched(watcher(running, bookmark), stop_timeout_s=LIMIT_S) as heard:
        ends = [of(heard, RunEnded, name) for name in ("unseen", "brief")]
        beacon(running, heard, "back")
    assert [end.code for end in ends] == [6, 7]
    assert asked - S < ends[0].time_ns < stopped + S
    assert not heard.all(RuntimeAction, lambda e: e.workload.name == "before")  # not told twice
    assert not heard.all(Gap)


def test_many_at_once_are_all_told(running: Engine, heard: Heard) -> None:
    names = [f"many-{number}" for number in range(8)]
    options = ("run", "--rm", "--network", "none", "--name")
    crowd = [
        subprocess.Popen([running.name, *options, name, IMAGE, "sh", "-c", "exit 9"], stderr=subprocess.PIPE)
        for name in names
    ]
    for one in crowd:
        one.communicate(timeout=LIMIT_S)
    assert [of(heard, RunEnded, name).code for name in names] == [9] * len(names)
    assert len(heard.all(RunEnded)) == len(names)


def test_a_daemon_that_is_restarted_is_lost_and_found(running: Engine) -> None:
    """Docker's containers end with it and its memory of events too; Podman's need no daemon."""
    bookmark = Bookmark()
    lost = watcher(running, bookmark)
    with pytest.raises(Unavailable), watched(lost, stop_timeout_s=LIMIT_S) as heard:  # noqa: PT012
        beacon(running, heard, "before-restart")
        running.run("caught", "sleep", "1000")
        of(heard, RunStarted, "caught")
        running.restart()
        time.sleep(2)
    with watched(watcher(running, bookmark), stop_timeout_s=LIMIT_S) as again:
        beacon(running, again, "after-restart")
    ends = [end.workload.name for end in (*heard.all(RunEnded), *again.all(RunEnded))]
    if running.name == "docker":
        assert ends == ["caught"]  # once, before or after
        assert again.all(Gap)
    else:
        assert ends == []
        assert not again.all(Gap)
    running("rm", "-f", "caught")


def test_whoever_may_not_is_told_what_it_takes(running: Engine) -> None:
    program = (
        "import os, sys\n"
        f"from cgotel.runtimes.{running.name} import {KINDS[running.name].__name__} as W\n"
        "import cgotel.runtimes.engine.daemon\n"
        "from cgotel.contract import *\n"
        "w = W(W.Config(socket=sys.argv[1]), Roots(), Timeline(), Bookmark())\n"
        "os.setuid(65534)\n"
        "try: w.start()\n"
        "except Unavailable as e: print(e.status.state, e.status.remedy)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, running.socket],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.stdout.startswith("denied run the agent as root"), done.stderr
