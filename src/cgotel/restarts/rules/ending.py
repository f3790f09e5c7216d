"""Ended by itself: it could not start, crashed, failed, hit its limit of tasks, or was done."""

from __future__ import annotations

import signal as signals
from collections.abc import Sequence

from cgotel.evidence import Fault, ForkRejected, LastWords, PidsEvents
from cgotel.restarts.facts import Facts
from cgotel.restarts.rule import Rule, any_of, found
from cgotel.restarts.rules.gpu import words_without_a_full_gpu
from cgotel.restarts.rules.supervisor import stop_asked
from cgotel.restarts.verdict import Finding
from cgotel.restarts.words import signal_name

_CRASHES = frozenset(
    int(s)
    for s in (
        signals.SIGILL,
        signals.SIGTRAP,
        signals.SIGABRT,
        signals.SIGBUS,
        signals.SIGFPE,
        signals.SIGSEGV,
        signals.SIGSYS,
    )
)
_PIDS_BEFORE_S = 60.0
_INIT_OF_RUNC = ("runc:[", "crun:[")


def main_ended(facts: Facts) -> Sequence[Finding]:
    """How it ended, by each who told: the kernel, systemd, the runtime."""
    seen = []
    if facts.main_exit is not None:
        how = f"by {signal_name(facts.signal)}" if facts.signal is not None else f"with {facts.code}"
        seen.append(found(facts.main_exit, f"the main process ({facts.main_exit.pid}) ended {how}"))
    unit = facts.unit
    if unit is not None and (unit.signal is not None or unit.code is not None):
        how = f"signal {unit.signal}" if unit.signal is not None else f"code {unit.code}"
        seen.append(found(unit, f"systemd says {how}, Result={unit.result}"))
    if facts.reported_code is not None and facts.workload.runtime != "cgroup":
        witness = "runtime" if facts.workload.runtime != "systemd" else "systemd"
        seen.append(
            Finding(f"{facts.workload.runtime} reports exit code {facts.exit.code}", witness, facts.end_ns)
        )
    return seen


def ended_well(facts: Facts) -> Sequence[Finding]:
    """The main process ended itself with 0."""
    return main_ended(facts) if facts.code == 0 else []


def ended_badly(facts: Facts) -> Sequence[Finding]:
    """The main process ended itself with another code than 0."""
    return main_ended(facts) if facts.code else []


def crashed(facts: Facts) -> Sequence[Finding]:
    """A signal that a process earns by what it does ended the main process, or a child that it waited for."""
    if _crash_signal(facts) is None:
        return []
    children = [
        found(child, f"{signal_name(child.signal)} ended {child.comm} ({child.pid}) of it")
        for child in facts.told_children[:1]
    ]
    return [*children, *main_ended(facts)]


def _crash_signal(facts: Facts) -> int | None:
    number = facts.signal
    if number is None:
        number = facts.reported_signal if facts.code is None else facts.told_signal
    return number if number in _CRASHES else None


def fault_told(facts: Facts) -> Sequence[Finding]:
    """The kernel log tells of the fault."""
    faults = facts.near_end(Fault, lambda e: facts.is_main(e.pid) or facts.own(e.cgroup))
    return [found(e, f"{e.comm} ({e.pid}): {e.what}") for e in faults[-1:]]


def could_not_start(facts: Facts) -> Sequence[Finding]:
    """Its supervisor could not start it, or what was to become its program never did."""
    ended = facts.main_exit
    if ended is not None and ended.comm.startswith(_INIT_OF_RUNC) and ended.code:
        return [found(ended, f"{ended.comm} ended with {ended.code} before it became the program")]
    if facts.exit.started:
        return []
    why = f": {facts.exit.error}" if facts.exit.error else ""
    return [
        Finding(f"{facts.workload.runtime} could not start it{why}", facts.workload.runtime, facts.end_ns)
    ]


def no_more_tasks(facts: Facts) -> Sequence[Finding]:
    """A fork was refused by a limit of tasks: here, or at a limit of an ancestor, by its own counter.

    The hierarchical counter of an ancestor also rises for a neighbour.
    """
    refused = facts.near_end(
        PidsEvents,
        lambda e: facts.own(e.cgroup) or (e.local and facts.above(e.cgroup)),
        _PIDS_BEFORE_S,
        5,
    )
    told = facts.near_end(ForkRejected, lambda e: facts.own(e.cgroup), _PIDS_BEFORE_S, 5)
    return [
        *(found(e, f"pids.events of {e.cgroup}: {e.refused} forks refused") for e in refused[-1:]),
        *(found(e, f"the kernel refused a fork in {e.cgroup}") for e in told[-1:]),
    ]


def words_of_tasks(facts: Facts) -> Sequence[Finding]:
    """Its last words are those of a program that could not start a thread or process."""
    return [
        found(e, f"its last words: {e.pattern}")
        for e in facts.near_end(LastWords, lambda e: e.meaning == "pids", 60, 60)
    ]


def _because_crash(facts: Facts) -> str:
    name = signal_name(_crash_signal(facts))
    if told := fault_told(facts):
        return f"{name} ended it: {told[0].text}"
    whom = "a process of it" if facts.told_signal is not None else "it"
    return f"{name} ended {whom}, for something that it did itself"


def _children_lost(facts: Facts) -> Sequence[str]:
    """Processes of it that the OOM killer took before, while the main process lived on."""
    kills = [e for e in facts.oom_kills if e not in facts.oom_kills_of_main]
    if not kills:
        return []
    names = ", ".join(dict.fromkeys(e.comm or str(e.pid) for e in kills[-3:]))
    ago = (facts.end_ns - kills[-1].time_ns) / 1e9
    return [f"the OOM killer took {names} of it {ago:.3g} s before; that is an event of its own"]


def _told_by_log(facts: Facts) -> Sequence[str]:
    words = facts.near_end(LastWords, lambda _: True, 60, 60)
    return [f"its last words: {', '.join(dict.fromkeys(e.pattern for e in words))}"] if words else []


def _around(facts: Facts) -> Sequence[str]:
    return [*_children_lost(facts), *_told_by_log(facts)]


RULES = (
    Rule(
        cause="start_failure",
        name="it could not start",
        rank=90,
        needs=(could_not_start,),
        because=lambda facts: facts.exit.error or "its supervisor could not start it",
        advice=lambda _: "mend the command, the image or the unit: a retry cannot help",
    ),
    Rule(
        cause="pids_limit",
        name="it failed when no more tasks were allowed",
        rank=500,
        needs=(no_more_tasks, any_of(ended_badly, crashed)),
        supports=(words_of_tasks,),
        unless=(stop_asked,),
        word_of=("cgroup_events", "kernel_log"),
        witnesses=("cgroup_events", "kernel_log"),
        because=lambda _: "it was allowed no more tasks (pids.max), and failed",
        advice=lambda _: "raise pids.max (TasksMax=, --pids-limit), or find what forks",
    ),
    Rule(
        cause="crash",
        name="a fault of its own",
        rank=510,
        needs=(crashed,),
        supports=(fault_told,),
        contradicts=(words_without_a_full_gpu,),
        witnesses=("processes",),
        because=_because_crash,
        contributing=_around,
        advice=lambda _: "look at its core dump (coredumpctl) and its last words",
    ),
    Rule(
        cause="application_error",
        name="it ended itself with an error",
        rank=520,
        needs=(ended_badly,),
        witnesses=("processes",),
        because=lambda facts: f"it ended itself with exit code {facts.code}",
        contributing=_around,
        advice=lambda _: "its own log says why",
    ),
    Rule(
        cause="completed",
        name="it was done",
        rank=530,
        needs=(ended_well,),
        witnesses=("processes",),
        because=lambda _: "it ended itself with exit code 0",
        contributing=_children_lost,
    ),
)
