"""Ended by somebody's will: a stop, a redeployment, a shutdown, a signal from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

from cgotel.evidence import HostState, ProcessExit, RunStarted, RuntimeAction, RuntimeState, Signal
from cgotel.restarts.facts import SIGKILL, Facts
from cgotel.restarts.rule import Rule, found
from cgotel.restarts.verdict import Finding

_GRACE_S = 120.0
_AT_ONCE_S = 15.0
_AT_END_S = 0.5
_LOGGED_LATE_S = 5.0  # by Docker, when all is over
_HARMLESS = frozenset((1, 10, 12, 17, 18, 28))  # HUP, USR1, USR2, CHLD, CONT, WINCH: asked of the living
_STOP_JOBS = frozenset(("stop", "restart", "try-restart", "reload-or-restart"))
_STOPS = frozenset(("stop", "restart", "killing", "stopping", "remove"))


def stop_asked(facts: Facts) -> Sequence[Finding]:
    """Its supervisor was told to end it, or was seen to do so."""
    return [*_by_action(facts), *_by_job(facts), *_by_signal(facts)]


def _by_action(facts: Facts) -> list[Finding]:
    return [
        found(e, _words(e)) for e in facts.actions if _ends(e) and facts.is_near(e, _grace_s(e), _late_s(e))
    ]


def _ends(e: RuntimeAction) -> bool:
    return e.action in _STOPS or (e.action == "kill" and e.signal not in _HARMLESS)


def _late_s(e: RuntimeAction) -> float:
    """How long after the end it may be told; Podman's `restart` comes first, or means its own policy."""
    if e.action == "stop" or (e.action == "restart" and e.source == "docker"):
        return _LOGGED_LATE_S
    return _AT_END_S


def _grace_s(e: RuntimeAction) -> float:
    """Podman does not say which signal it was told to send: only what ends at once was meant to."""
    return _AT_ONCE_S if e.action == "kill" and e.signal is None else _GRACE_S


def _words(e: RuntimeAction) -> str:
    return f"{e.source} was told to {e.action} it" + (f" (signal {e.signal})" if e.signal else "")


def _by_job(facts: Facts) -> list[Finding]:
    seen = [
        found(e, "the runtime says that a stop was asked for")
        for e in facts.near_end(RuntimeState, lambda e: e.stop_requested is True, 5, 60)
    ]
    if facts.unit is not None and _stopped_by_job(facts):
        seen.append(found(facts.unit, f"systemd had a {facts.unit.job} job for it"))
    return seen


def _stopped_by_job(facts: Facts) -> bool:
    """Not so for the scope of a container: its runtime stops that after every end."""
    unit = facts.unit
    return unit is not None and unit.workload.id == facts.workload.id and unit.job in _STOP_JOBS


def _by_signal(facts: Facts) -> list[Finding]:
    if facts.shim_died:
        return []  # the runtime clears away what its shim left behind: nobody asked for that
    return [
        found(e, f"{e.sender_comm} sent signal {e.signal} for its runtime")
        for e in facts.signals_to_main
        if facts.by_runtime(e) and facts.is_near(e, _GRACE_S)
    ]


def replaced(facts: Facts) -> Sequence[Finding]:
    """One of the same name with another image came in its place."""
    mine = facts.workload
    successors = [
        e
        for e in facts.case.evidence
        if isinstance(e, RuntimeAction | RunStarted)
        and e.workload.name
        and e.workload.name == mine.name
        and (e.workload.id != mine.id or e.time_ns > facts.end_ns)
        and _other_image(facts, e)
    ]
    return [
        found(e, f"a new {e.workload.title} with another image came in its place") for e in successors[:1]
    ]


def _other_image(facts: Facts, e: RuntimeAction | RunStarted) -> bool:
    mine, new = facts.workload, e.workload
    if mine.image_id and new.image_id:
        return mine.image_id != new.image_id
    return bool(mine.image and new.image and mine.image != new.image)


def ended(facts: Facts) -> Sequence[Finding]:
    """The kernel told how the main process ended, and it fits a request to end."""
    if facts.main_exit is None:
        return []
    how = f"by signal {facts.signal}" if facts.signal is not None else f"with {facts.code}"
    return [found(facts.main_exit, f"the main process ended {how}")]


def host_going_down(facts: Facts) -> Sequence[Finding]:
    """The host was shutting down."""
    states = facts.near_end(HostState, lambda e: e.state == "shutdown", _GRACE_S, 5)
    return [found(e, "the host was shutting down") for e in states[-1:]]


def sent_by_somebody(facts: Facts) -> Sequence[Finding]:
    """A process that is no runtime was seen to send the signal that ended it."""
    sent = _sender(facts)
    return [] if sent is None else [found(sent, f"{_who(facts, sent)} sent signal {sent.signal}")]


def _sender(facts: Facts) -> Signal | None:
    sent = facts.final_signal
    if sent is None:
        near = [e for e in facts.signals_to_main if facts.is_near(e) and facts.may_have_ended_by(e.signal)]
        sent = near[-1] if near else None
    if sent is None or facts.by_runtime(sent) or sent.sender_pid == facts.main_pid:
        return None
    return sent


def _who(facts: Facts, sent: Signal) -> str:
    name = f"{sent.sender_comm or 'a process'} ({sent.sender_pid})"
    if facts.own(sent.sender_cgroup):
        return f"{name}, a process of its own,"
    return f"{name} in {sent.sender_cgroup}" if sent.sender_cgroup else name


def child_killed_by_somebody(facts: Facts) -> Sequence[Finding]:
    """Somebody killed a child, and the main process passed its status on."""
    child, sent = _killed_child(facts)
    if child is None or sent is None:
        return []
    text = f"{_who(facts, sent)} sent signal {sent.signal} to {sent.comm or child.comm} ({child.pid}) of it"
    return [found(sent, text), found(child, f"that ended {child.comm} ({child.pid})")]


def _killed_child(facts: Facts) -> tuple[ProcessExit, Signal] | tuple[None, None]:
    for child in facts.told_children:
        sent = facts.near_end(
            Signal,
            lambda e, child=child: (  # type: ignore[misc]
                e.pid == child.pid
                and e.signal == child.signal
                and e.code != 128
                and e.sender_pid != child.pid
            ),
        )
        if sent:
            return child, sent[-1]
    return None, None


def asked_otherwise(facts: Facts) -> Sequence[Finding]:
    """The kernel, and no process, sent the SIGKILL."""
    if facts.signal != SIGKILL or not facts.kernel_signals:
        return []
    return [found(facts.kernel_signals[-1], "the kernel itself sent the SIGKILL")]


def _because_stop(facts: Facts) -> str:
    if facts.signal == SIGKILL or facts.reported_signal == SIGKILL:
        first = next((e for e in facts.actions if e.action == "kill"), None)
        if first is not None and first.signal == SIGKILL:
            return "it was ended on request, by SIGKILL at once"
        return "it was asked to stop, did not end in the time it was given, and was then killed"
    return "it was asked to stop, and ended"


def _advice_stop(facts: Facts) -> str:
    if facts.signal == SIGKILL or facts.reported_signal == SIGKILL:
        return "let it handle SIGTERM (as PID 1 it ignores it otherwise), or give it more time to stop"
    return ""


def _by(facts: Facts) -> str:
    asked = [e.source for e in facts.actions if _ends(e)]
    if asked:
        return asked[-1]
    if _stopped_by_job(facts):
        return "systemd"
    return next((e.sender_comm for e in facts.signals_to_main if facts.by_runtime(e)), "")


def _by_sender(facts: Facts) -> str:
    return _sender_name(_sender(facts))


def _by_child(facts: Facts) -> str:
    _, sent = _killed_child(facts)
    return _sender_name(sent)


def _sender_name(sent: Signal | None) -> str:
    return "" if sent is None else sent.sender_comm or str(sent.sender_pid)


RULES = (
    Rule(
        cause="host_shutdown",
        name="the host went down",
        rank=400,
        needs=(host_going_down,),
        supports=(stop_asked, ended),
        because=lambda _: "the host was shutting down",
        by=lambda _: "systemd",
        witnesses=("systemd",),
    ),
    Rule(
        cause="redeployed",
        name="stopped, and replaced by another image",
        rank=410,
        needs=(stop_asked, replaced),
        supports=(ended,),
        contradicts=(asked_otherwise,),
        witnesses=("signals", "processes"),
        because=lambda facts: f"{_because_stop(facts)}; one with another image took its place",
        by=_by,
        advice=_advice_stop,
    ),
    Rule(
        cause="requested_stop",
        name="its supervisor was told to end it",
        rank=420,
        needs=(stop_asked,),
        supports=(ended,),
        contradicts=(asked_otherwise,),
        witnesses=("signals", "processes"),
        because=_because_stop,
        by=_by,
        advice=_advice_stop,
    ),
    Rule(
        cause="killed_externally",
        name="somebody sent the signal that ended it",
        rank=430,
        needs=(sent_by_somebody,),
        supports=(ended,),
        unless=(asked_otherwise,),
        witnesses=("processes",),
        because=lambda facts: sent_by_somebody(facts)[0].text,
        by=_by_sender,
        advice=lambda facts: f"find out why {_by_sender(facts)} ends it",
    ),
    Rule(
        cause="killed_externally",
        name="somebody killed its child, and it passed that on",
        rank=440,
        needs=(child_killed_by_somebody,),
        unless=(stop_asked,),
        witnesses=("signals", "processes"),
        because=lambda facts: f"{child_killed_by_somebody(facts)[0].text}, and the main process gave up",
        by=_by_child,
        advice=lambda facts: f"find out why {_by_child(facts)} ends it",
    ),
)
