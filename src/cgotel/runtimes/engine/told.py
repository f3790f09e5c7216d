"""From what an engine says to evidence: one piece at a time, no I/O."""

from __future__ import annotations

import signal
from collections.abc import Iterator

from cgotel.contract import Timeline
from cgotel.evidence import ProbeResult, RunEnded, RuntimeAction, RuntimeState, Workload
from cgotel.runtimes.engine.messages import Container, Event, Health

LATE_NS = 2 * 10**9
"""How long after an end its event may come where nothing says when that was."""


def runs_again(container: Container) -> bool:
    """Whether what is shown is a run after the one that ended last: its code and flags are reset."""
    return (container.began or 0) > (container.ended or 0)


def is_end_of(event: Event, container: Container | None) -> bool:
    """Whether ``ended`` is the end that this event is about: a later run would have ended after it."""
    return container is not None and container.ended is not None and container.ended <= event.wall_ns


def run_ended(
    event: Event,
    container: Container | None,
    workload: Workload,
    began_ns: int | None,
    timeline: Timeline,
    late_ns: int = LATE_NS,
) -> RunEnded:
    """The end of a run; the event comes late, and a container that was removed at once has nothing else."""
    if container is None or not is_end_of(event, container):
        return RunEnded(
            source=workload.runtime,
            time_ns=timeline.from_wall(event.wall_ns),
            uncertainty_ns=late_ns,
            cgroup=workload.cgroup,
            workload=workload,
            began_ns=began_ns,
            code=event.code,
        )
    assert container.ended is not None
    again = runs_again(container)
    code = None if again else container.code
    return RunEnded(
        source=workload.runtime,
        time_ns=timeline.from_wall(container.ended),
        cgroup=workload.cgroup,
        workload=workload,
        began_ns=began_ns,
        code=code if event.code is None else event.code,
        error="" if again else container.error,
    )


def runtime_state(event: Event, container: Container, ended: RunEnded) -> RuntimeState:
    """What the engine holds of the run that ended; of one that was followed at once only what lasts."""
    mine = is_end_of(event, container) and not runs_again(container)
    return RuntimeState(
        source=ended.source,
        time_ns=ended.time_ns,
        uncertainty_ns=ended.uncertainty_ns,
        cgroup=ended.cgroup,
        workload=ended.workload,
        code=ended.code,
        oom_killed=container.oom_killed if mine else None,
        error=container.error if mine else "",
        restart_count=container.restart_count,
        restart_policy=container.restart_policy,
        health=container.health.status if mine and container.health else "",
    )


def runtime_action(event: Event, workload: Workload, timeline: Timeline) -> RuntimeAction:
    """Anything else that was done to a container."""
    reason = event.detail
    if event.action in ("exec_die", "exec_died") and event.code is not None:
        reason = f"exit code {event.code}"
    return RuntimeAction(
        source=workload.runtime,
        time_ns=timeline.from_wall(event.wall_ns),
        cgroup=workload.cgroup,
        workload=workload,
        action=event.action,
        signal=_signal(event.signal),
        reason=reason,
    )


def _signal(name: str) -> int | None:
    """``15``, ``SIGTERM`` or ``TERM``."""
    if name.isdecimal() and len(name) < 4:
        return int(name)
    plain = name.upper() if name.upper().startswith("SIG") else f"SIG{name.upper()}"
    return int(signal.Signals[plain]) if plain in signal.Signals.__members__ else None


def probe_results(
    health: Health, after: int, workload: Workload, timeline: Timeline
) -> Iterator[tuple[int, ProbeResult]]:
    """Every probe that ended after ``after``, oldest first, each with its end on the wall clock.

    The engine keeps one number of failures in a row, as of the last probe; from there it is counted
    back. Failures that it does not count (in the start period) have none.
    """
    streak = health.failures
    counted: list[int | None] = []
    known = True
    for probe in reversed(health.probes):
        if probe.code == 0:
            counted.append(0)
            known = False  # what was before it, nobody counts any more
        else:
            counted.append(streak if known and streak > 0 else None)
            streak -= 1
    for probe, failures in zip(health.probes, reversed(counted), strict=True):
        if probe.ended > after:
            yield (
                probe.ended,
                ProbeResult(
                    source=workload.runtime,
                    time_ns=timeline.from_wall(probe.ended),
                    cgroup=workload.cgroup,
                    workload=workload,
                    ok=probe.code == 0,
                    latency_s=max(0, probe.ended - probe.began) / 1e9,
                    failures=failures,
                    text=probe.text,
                    threshold=health.retries,
                ),
            )
