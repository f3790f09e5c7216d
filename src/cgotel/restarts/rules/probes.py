"""Ended because it did not answer: a health probe failed, or a watchdog was not fed."""

from __future__ import annotations

from collections.abc import Sequence

from cgotel.evidence import MemoryEvents, MemoryUse, ProbeResult, RunStarted, RuntimeAction
from cgotel.restarts.facts import Facts
from cgotel.restarts.rule import Rule, found
from cgotel.restarts.rules.supervisor import stop_asked
from cgotel.restarts.verdict import Finding

_UNHEALTHY_BEFORE_S = 300.0
_AT_ONCE_NS = 3 * 10**9
_WATCHDOG_BEFORE_S = 120.0
_REASONS = ("unhealthy", "liveness", "startup probe")


def probe_failed(facts: Facts) -> Sequence[Finding]:
    """The last probes before the end failed, so that it was held for unhealthy."""
    results = [e for e in facts.all(ProbeResult, lambda e: _is_about(e, facts)) if e.time_ns <= facts.end_ns]
    if results and not results[-1].ok and facts.is_near(results[-1], _UNHEALTHY_BEFORE_S):
        last = results[-1]
        slow = f" after {last.latency_s:.3g} s" if last.latency_s is not None else ""
        return [found(last, f"its health probe failed{slow}, {last.failures or 1} in a row")]
    return []


def _is_about(e: ProbeResult, facts: Facts) -> bool:
    """A probe of ours knows its workload by the name it was configured with."""
    mine = facts.workload
    return e.workload.id in (mine.id, mine.name, mine.cgroup) or bool(
        mine.name and e.workload.name == mine.name
    )


def unhealthy(facts: Facts) -> Sequence[Finding]:
    """Its runtime held it for unhealthy up to the end."""
    states = [e for e in facts.actions if e.action.startswith("health_status") and e.time_ns <= facts.end_ns]
    if not states or "unhealthy" not in f"{states[-1].action} {states[-1].reason}":
        return []
    return [found(states[-1], "its runtime held it for unhealthy")]


def killed_as_unhealthy(facts: Facts) -> Sequence[Finding]:
    """Its supervisor says that it ends it because of its health."""
    return [
        found(e, f"{e.source} ended it: {e.reason}")
        for e in facts.actions
        if _named(e) and e.time_ns <= facts.end_ns + 10**9
    ]


def held_unhealthy(facts: Facts) -> Sequence[Finding]:
    """It was held for unhealthy up to the end; Podman's events do not say so, its probes do."""
    if held := unhealthy(facts):
        return held
    return probe_failed(facts) if facts.workload.runtime == "podman" else []


def stopped_after_unhealthy(facts: Facts) -> Sequence[Finding]:
    """It was stopped while it was held for unhealthy: at once, or to be started again.

    By whom, the runtime does not say. One that is stopped later, and removed, may just be cleared away.
    """
    held = held_unhealthy(facts)
    if not held:
        return []
    stops = [finding for finding in stop_asked(facts) if finding.time_ns >= held[-1].time_ns - 10**9]
    return stops if _started_again(facts) or _killed_at_once(facts, held[-1]) else []


def _killed_at_once(facts: Facts, held: Finding) -> bool:
    """Podman's own `--health-on-failure`: a removal by hand kills too, and is not told as a kill."""
    return facts.workload.runtime == "podman" and any(
        e.action in ("kill", "stop") and 0 <= e.time_ns - held.time_ns <= _AT_ONCE_NS for e in facts.actions
    )


def _started_again(facts: Facts) -> bool:
    restarts = [e for e in facts.actions if e.action == "restart" and facts.is_near(e, 30, 60)]
    runs = facts.all(RunStarted, lambda e: e.workload.id == facts.workload.id and e.time_ns > facts.end_ns)
    return bool(restarts or runs)


def watchdog_fired(facts: Facts) -> Sequence[Finding]:
    """systemd says that the watchdog was not fed in time."""
    if facts.unit is None or facts.unit.result != "watchdog":
        return []
    return [found(facts.unit, "systemd says Result=watchdog")]


def aborted_by_systemd(facts: Facts) -> Sequence[Finding]:
    """systemd was seen sending the signal."""
    return [
        found(e, f"systemd sent signal {e.signal}")
        for e in facts.signals_to_main
        if e.sender_comm == "systemd" and facts.is_near(e, _WATCHDOG_BEFORE_S)
    ]


def main_signalled(facts: Facts) -> Sequence[Finding]:
    """A signal truly ended the main process."""
    if facts.main_exit is None or facts.signal is None:
        return []
    return [found(facts.main_exit, f"signal {facts.signal} ended the main process")]


def slowed(facts: Facts) -> Sequence[str]:
    """What slowed it down before, in words."""
    told = []
    high = facts.all(MemoryEvents, lambda e: facts.own(e.cgroup) and e.rose.get("high", 0) > 0)
    if high:
        total = sum(e.rose["high"] for e in high if e.local) or sum(e.rose["high"] for e in high)
        told.append(f"memory pressure at memory.high: throttled {total} times")
    stalled = facts.near_end(
        MemoryUse, lambda e: facts.own(e.cgroup) and (e.full_avg10 or 0) >= 0.1, _UNHEALTHY_BEFORE_S, 1
    )
    if stalled:
        worst = max(e.full_avg10 or 0 for e in stalled)
        told.append(f"all of its tasks waited for memory {worst:.0%} of the time")
    return told


def _because(facts: Facts) -> str:
    healer = next((e for e in facts.actions if _named(e)), None)
    who = healer.source if healer else "whoever watches its health"
    slow = ", while it was slowed by memory reclaim" if slowed(facts) else ""
    return f"its health probe failed{slow}, and {who} ended it; the kernel did not"


def _named(e: RuntimeAction) -> bool:
    """Whether a supervisor gives its health for the reason to end it; a change of its health is none."""
    return not e.action.startswith("health_status") and any(word in e.reason.lower() for word in _REASONS)


def _advice(facts: Facts) -> str:
    if slowed(facts):
        return (
            "raise memory.high or give the probe more time: a process in reclaim answers late and is not dead"
        )
    return "see what the probe waits for; give it more time only if the process is known to be alive then"


RULES = (
    Rule(
        cause="health_check",
        name="its supervisor ended it for its health",
        rank=300,
        needs=(killed_as_unhealthy,),
        supports=(probe_failed, unhealthy, stop_asked, main_signalled),
        witnesses=("signals", "processes", "docker", "cri"),
        because=_because,
        by=lambda facts: next((e.source for e in facts.actions if _named(e)), ""),
        contributing=slowed,
        advice=_advice,
    ),
    Rule(
        cause="health_check",
        name="it was stopped while it was unhealthy",
        rank=310,
        needs=(held_unhealthy, stopped_after_unhealthy),
        supports=(probe_failed, main_signalled),
        witnesses=("signals", "processes"),
        because=_because,
        contributing=slowed,
        advice=_advice,
    ),
    Rule(
        cause="watchdog",
        name="systemd's watchdog was not fed",
        rank=320,
        needs=(watchdog_fired,),
        supports=(aborted_by_systemd, main_signalled),
        witnesses=("signals", "processes"),
        because=lambda _: "it did not feed systemd's watchdog in time, and systemd ended it",
        by=lambda _: "systemd",
        contributing=slowed,
        advice=lambda facts: (
            "raise memory.high or WatchdogSec=: it was slowed by reclaim"
            if slowed(facts)
            else "find what blocked it; raise WatchdogSec= only if it was at work"
        ),
    ),
)
