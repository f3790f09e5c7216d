"""Somebody looks after it: health checks, who acts on them, watchdogs."""

from __future__ import annotations

from tests.lab.guest.failures.memory import hog
from tests.lab.guest.failures.model import ENGINES, Caused, failure
from tests.lab.guest.supervisors.engine import Engine
from tests.lab.guest.supervisors.model import End, Probe, Program, Supervisor, Workload, await_that

_GATE = 'read x < "$GATE"'


@failure(None, on=ENGINES)
def unhealthy_alone(engine: Engine, name: str) -> Caused:
    """Its health check fails, and nobody acts on that."""
    workload = engine.run(name, Program("exec sleep 1000", probe=Probe("false")))
    _await_unhealthy(engine, workload)
    return Caused(workload, End(None, engine.state(workload.id), engine.events(workload)), ends=0)


@failure("health_check", on=ENGINES, or_else=("requested_stop", "killed_externally"))
def unhealthy_and_healed(engine: Engine, name: str) -> Caused:
    """Its health check fails, and somebody who watches restarts it."""
    workload = engine.run(name, Program("exec sleep 1000", probe=Probe("false")))
    return _heal(engine, workload)


@failure("health_check", on=("podman",), or_else=("requested_stop", "killed_externally"))
def unhealthy_and_killed(engine: Engine, name: str) -> Caused:
    """Podman's own --health-on-failure=kill."""
    workload = engine.run(name, Program("exec sleep 1000", probe=Probe("false", on_failure="kill")))
    return Caused(workload, engine.wait(workload))


@failure("health_check", on=ENGINES, or_else=("requested_stop", "killed_externally"))
def slowed_until_unhealthy(engine: Engine, name: str) -> Caused:
    """memory.high holds it back until its check, which was fine before, takes too long."""
    program = Program(f"{_GATE}; exec {hog(48, 1_000_000)}", probe=Probe("true", timeout_s=4))
    workload = engine.run(name, program)
    await_that(f"{name} is healthy", lambda: engine.health(workload) == "healthy")
    workload.file("memory.swap.max").write_text("0")
    workload.file("memory.high").write_text("16M")
    engine.open_gate(workload)
    return _heal(engine, workload)


@failure("watchdog", on=("systemd",))
def watchdog(supervisor: Supervisor, name: str) -> Caused:
    """It never says that it is alive."""
    workload = supervisor.run(name, Program(f"{_GATE}; sleep 1000", properties=("WatchdogSec=3s",)))
    return Caused(workload, supervisor.wait(workload))


def _heal(engine: Engine, workload: Workload) -> Caused:
    _await_unhealthy(engine, workload)
    engine.restart(workload, grace_s=1)
    events = engine.events(workload)
    [code] = [int(event.split()[1]) for event in events if event.startswith("die ")]
    return Caused(workload, End(code, engine.state(workload.id), events))


def _await_unhealthy(engine: Engine, workload: Workload) -> None:
    await_that(f"{workload.name} is unhealthy", lambda: engine.health(workload) == "unhealthy")
