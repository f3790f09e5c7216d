"""What is told of containers; the orders of events are those that Docker 20.10 and 26.1 and Podman 4.3
and 5.4 were seen to give when each thing was done to them."""

from __future__ import annotations

import time
from collections.abc import Callable

from tests.unit.runtimes.engine.engine_server import Engine

from cgotel.evidence import ProbeResult, RunEnded, RunStarted, RuntimeAction, RuntimeState
from cgotel.runtimes.engine.watcher import EngineWatcher
from cgotel.testing import Heard, watched

A, B = "a" * 64, "b" * 64
S = 10**9
Watching = Callable[..., EngineWatcher]


def listening(engine: Engine) -> None:
    """Wait until somebody listens: what happens before is not for this test."""
    deadline = time.monotonic() + 30
    while not engine.listeners and time.monotonic() < deadline:
        time.sleep(0.01)


def near(told_ns: int, wall_ns: int) -> bool:
    """Whether two stamps are the same but for the way between two clocks."""
    return abs(told_ns - wall_ns) < 50_000_000


def settled(engine: Engine, heard: Heard) -> list[RuntimeAction]:
    """Everything that was said so far has been worked through."""
    engine.happen("top", "f" * 64)
    heard.first(RuntimeAction, lambda e: e.workload.id == "f" * 64)
    return heard.all(RuntimeAction)


def test_a_container_that_runs_already_is_told_once(engine: Engine, watching: Watching) -> None:
    began = time.time_ns() - 60 * S
    engine.container(A, Status="running", began=began, Pid=77)["RestartCount"] = 3
    with watched(watching(engine)) as heard:
        started = heard.first(RunStarted)
        settled(engine, heard)
    assert len(heard.all(RunStarted)) == 1
    assert near(started.time_ns, began)
    assert started.restart_count == 3
    assert started.workload.name == "web"
    assert started.workload.image_id == "sha256:" + "5" * 64
    assert started.cgroup == started.workload.cgroup == f"/system.slice/docker-{A}.scope"
    assert started.workload.pid is None  # it is not in this host's /proc


def test_an_end_has_the_time_at_which_it_was_and_not_when_it_was_told(
    engine: Engine, watching: Watching
) -> None:
    began = time.time_ns() - 60 * S
    engine.container(A, Status="running", began=began)
    with watched(watching(engine)) as heard:
        heard.first(RunStarted)
        ended = time.time_ns() - 20 * S  # dockerd takes its time to delete the task
        engine.container(A, Status="exited", ended=ended, ExitCode=137, OOMKilled=True, Error="")
        engine.happen("die", A, exitCode="137")
        end, state = heard.first(RunEnded), heard.first(RuntimeState)
    assert near(end.time_ns, ended)
    assert end.began_ns is not None
    assert near(end.began_ns, began)
    assert (end.code, end.signal, end.started, end.uncertainty_ns) == (137, None, True, 0)
    assert (state.code, state.oom_killed, state.restart_policy) == (137, True, "no")
    assert state.time_ns == end.time_ns


def test_a_container_that_is_gone_before_anyone_can_ask_has_its_end_all_the_same(
    engine: Engine, watching: Watching
) -> None:
    with watched(watching(engine)) as heard:
        listening(engine)
        for action, more in (("create", {}), ("start", {}), ("die", {"exitCode": "4"}), ("destroy", {})):
            died = engine.happen(action, A, name="quick", image="bb:1", **more)
        end = heard.first(RunEnded)
    assert (end.code, end.workload.name, end.workload.image) == (4, "quick", "bb:1")
    assert near(end.time_ns, died)
    assert end.uncertainty_ns > 0
    assert end.cgroup == f"/system.slice/docker-{A}.scope"
    assert heard.all(RunStarted)
    assert not heard.all(RuntimeState)


def test_a_stop_told_before_its_death_is_passed_on_as_it_came(engine: Engine, watching: Watching) -> None:
    engine.container(A, Status="running", began=time.time_ns())
    with watched(watching(engine)) as heard:
        heard.first(RunStarted)
        engine.happen("kill", A, signal="15")
        engine.happen("kill", A, signal="9")
        engine.container(A, Status="exited", ended=time.time_ns(), ExitCode=137)
        engine.happen("stop", A)
        engine.happen("die", A, exitCode="137")
        engine.happen("oom", A)
        settled(engine, heard)
    told = [e for e in heard.evidence if isinstance(e, RuntimeAction | RunEnded) and e.workload.id == A]
    assert [getattr(e, "action", "ended") for e in told] == ["kill", "kill", "stop", "ended", "oom"]
    assert [e.signal for e in told[:2]] == [15, 9]


def test_a_restart_by_policy_leaves_the_flags_of_the_run_that_ended(
    engine: Engine, watching: Watching
) -> None:
    """While it waits to restart, Docker shows ``Running`` and ``Restarting``, and still the old run."""
    engine.container(A, Status="running", began=time.time_ns())
    with watched(watching(engine)) as heard:
        heard.first(RunStarted)
        engine.container(
            A, Status="restarting", Restarting=True, ended=time.time_ns(), OOMKilled=True, ExitCode=137
        )
        engine.happen("die", A, exitCode="137")
        state = heard.first(RuntimeState)
        settled(engine, heard)
    assert state.oom_killed is True
    assert len(heard.all(RunStarted)) == 1


def test_a_run_that_was_followed_at_once_has_no_flags_of_the_next_one(
    engine: Engine, watching: Watching
) -> None:
    first = time.time_ns() - 5 * S
    engine.container(A, Status="running", began=first)
    with watched(watching(engine)) as heard:
        heard.first(RunStarted)
        ended = time.time_ns()
        engine.container(
            A, Status="running", began=ended + S // 1000, ended=ended, ExitCode=0, OOMKilled=False
        )
        engine.happen("die", A, exitCode="139")
        engine.happen("start", A, ended + S // 100)
        heard.first(RunStarted, lambda e: not near(e.time_ns, first))
    (end,), (state,) = heard.all(RunEnded), heard.all(RuntimeState)
    assert (end.code, state.code, state.oom_killed, state.error) == (139, 139, None, "")
    assert near(end.time_ns, ended)
    assert end.began_ns is not None
    assert near(end.began_ns, first)


def test_dockers_start_that_failed_has_neither_start_nor_die(engine: Engine, watching: Watching) -> None:
    words = 'exec: "/nope": stat /nope: no such file or directory: unknown'
    engine.container(A, "miss", ExitCode=127, Error=words)
    with watched(watching(engine)) as heard:
        listening(engine)
        engine.happen("create", A)
        engine.happen("connect", A, topic="network")
        failed = engine.happen("disconnect", A, topic="network")
        end = heard.first(RunEnded)
    assert (end.started, end.code, end.error) == (False, 127, words)
    assert (end.began_ns, end.uncertainty_ns) == (None, 0)
    assert near(end.time_ns, failed)


def test_a_network_that_is_left_at_an_end_is_no_failed_start(engine: Engine, watching: Watching) -> None:
    """Docker 20.10 tells it after ``die``, 26.1 before."""
    engine.container(A, Status="running", began=time.time_ns())
    with watched(watching(engine)) as heard:
        heard.first(RunStarted)
        engine.happen("disconnect", A, topic="network")
        engine.container(A, Status="exited", ended=time.time_ns(), ExitCode=1, Error="transport is closing")
        engine.happen("die", A, exitCode="1")
        engine.happen("disconnect", A, topic="network")
        settled(engine, heard)
    assert [end.started for end in heard.all(RunEnded)] == [True]


def test_podman_5_says_nothing_of_a_start_that_failed_and_shows_it(
    podman: Engine, watching: Watching
) -> None:
    podman.container(A, "miss", Error="runc: exec: /nope: no such file")
    with watched(watching(podman)) as heard:
        listening(podman)
        made = podman.happen("create", A)
        end = heard.first(RunEnded)
    assert (end.started, end.code) == (False, None)  # the 0 that it shows is no exit code
    assert near(end.time_ns, made)
    assert end.uncertainty_ns > S


def test_podman_4_cleans_up_what_never_started(podman: Engine, watching: Watching) -> None:
    podman.container(A, "miss")
    with watched(watching(podman)) as heard:
        listening(podman)
        podman.happen("create", A, containerExitCode="0")
        podman.happen("cleanup", A, containerExitCode="0")
        end = heard.first(RunEnded)
    assert (end.started, end.code, end.error) == (False, None, "")


def test_podmans_words_are_understood(podman: Engine, watching: Watching) -> None:
    """``died`` in its own stream, ``die`` in Docker's; no number of a signal; a policy's ``restart``
    comes between the end of one run and the start of the next."""
    began = time.time_ns()
    podman.container(A, Status="running", began=began)
    with watched(watching(podman)) as heard:
        started = heard.first(RunStarted)
        podman.happen("kill", A, containerExitCode="0")
        podman.container(A, Status="exited", ended=time.time_ns(), ExitCode=137)
        podman.happen("died", A, containerExitCode="137")
        podman.happen("restart", A)
        settled(podman, heard)
    (end,) = heard.all(RunEnded)
    assert end.source == end.workload.runtime == "podman"
    assert end.code == 137
    assert started.cgroup == f"/machine.slice/libpod-{A}.scope"
    assert [(e.action, e.signal) for e in heard.all(RuntimeAction)][:2] == [("kill", None), ("restart", None)]


def test_a_renamed_container_goes_by_its_new_name(engine: Engine, watching: Watching) -> None:
    engine.container(A, "old", Status="running", began=time.time_ns())
    with watched(watching(engine)) as heard:
        heard.first(RunStarted)
        engine.containers[A]["Name"] = "/new"
        engine.happen("rename", A, oldName="/old")
        engine.container(A, Status="exited", ended=time.time_ns(), ExitCode=0)
        engine.happen("die", A, exitCode="0")
        end = heard.first(RunEnded)
    (renamed,) = heard.all(RuntimeAction)
    assert (renamed.action, renamed.reason, renamed.workload.name) == ("rename", "old", "new")
    assert end.workload.name == "new"


def test_a_redeployment_has_the_name_and_another_image(engine: Engine, watching: Watching) -> None:
    engine.container(A, Status="running", began=time.time_ns())
    with watched(watching(engine)) as heard:
        heard.first(RunStarted)
        engine.containers.pop(A)
        engine.happen("destroy", A)
        began = time.time_ns()
        engine.container(B, Status="running", began=began).update(Image="sha256:" + "6" * 64)
        engine.containers[B]["Config"]["Image"] = "bb:2"
        engine.happen("create", B)
        engine.happen("start", B)
        again = heard.first(RunStarted, lambda e: e.workload.id == B)
    assert (again.workload.name, again.workload.image) == ("web", "bb:2")
    assert again.workload.image_id == "sha256:" + "6" * 64


def test_probes_are_told_once_each_with_how_long_they_took(engine: Engine, watching: Watching) -> None:
    now = time.time_ns()
    runs = [(now + i * S, now + i * S + S // 4, code) for i, code in enumerate((0, 1, 1, -1))]
    log = [
        {
            "Start": _stamp(began),
            "End": _stamp(ended),
            "ExitCode": code,
            "Output": "Health check exceeded timeout",
        }
        for began, ended, code in runs
    ]
    engine.container(
        A, Status="running", began=now, Health={"Status": "healthy", "FailingStreak": 0, "Log": []}
    )
    engine.containers[A]["Config"]["Healthcheck"] = {"Test": ["CMD", "x"], "Retries": 0}
    with watched(watching(engine)) as heard:
        heard.first(RunStarted)
        engine.container(A, Health={"Status": "healthy", "FailingStreak": 1, "Log": log[:2]})
        engine.happen("exec_die", A, execID="e", exitCode="1")
        heard.first(ProbeResult, lambda e: not e.ok)
        engine.container(A, Health={"Status": "unhealthy", "FailingStreak": 3, "Log": log})
        engine.happen("exec_die", A, execID="f", exitCode="1")
        engine.happen("health_status: unhealthy", A)
        heard.first(ProbeResult, lambda e: e.failures == 3)
    told = heard.all(ProbeResult)
    assert [(e.ok, e.failures) for e in told] == [(True, 0), (False, 1), (False, 2), (False, 3)]
    assert {(e.latency_s, e.threshold) for e in told} == {(0.25, 3)}
    assert near(told[0].time_ns, runs[0][1])
    assert ("health_status", "unhealthy") in [(e.action, e.reason) for e in heard.all(RuntimeAction)]


def test_command_lines_of_execs_are_not_told(engine: Engine, watching: Watching) -> None:
    with watched(watching(engine)) as heard:
        listening(engine)
        engine.happen("exec_create: mysql --password=hunter2", A, execID="e")
        settled(engine, heard)
    assert "hunter2" not in repr(heard.evidence)
    assert heard.all(RuntimeAction)[0].action == "exec_create"


def _stamp(wall_ns: int) -> str:
    from tests.unit.runtimes.engine.engine_server import stamp

    return stamp(wall_ns)
