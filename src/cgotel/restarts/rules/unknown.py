"""What is said where no rule applies: what is known, and whose word is missing."""

from __future__ import annotations

from cgotel.restarts.facts import SIGKILL, Facts
from cgotel.restarts.rules.ending import main_ended
from cgotel.restarts.verdict import Verdict

_WHO_KILLED = ("kernel_log", "signals", "cgroup_events", "processes")


def unknown(facts: Facts) -> Verdict:
    """The verdict `unknown`, with the reason."""
    silences = {source: why for source in _WHO_KILLED if (why := facts.silent(source)) is not None}
    return Verdict(
        cause="unknown",
        sureness="unknown",
        because=_because(facts),
        supporting=tuple(main_ended(facts)),
        missing=silences,
        excluded=("memory",) if facts.memory_excluded else (),
        advice=_advice(silences),
    )


def _because(facts: Facts) -> str:
    if facts.shim_died:
        return (
            "containerd's shim died, and what was left was killed: its exit code is containerd's own making"
        )
    if facts.killed:
        return "SIGKILL ended the main process, and nobody saw who sent it"
    if facts.may_have_ended_by(SIGKILL) and facts.reported_signal == SIGKILL:
        return "exit code 137 says SIGKILL, and nothing about who sent it"
    if facts.signal is not None:
        return f"signal {facts.signal} ended the main process, and nobody saw who sent it"
    if facts.exit.code is not None:
        return f"exit code {facts.exit.code} is all that is known"
    return "not even its exit code is known"


def _advice(silences: dict[str, str]) -> str:
    if not silences:
        return "look at the log of the workload and of its supervisor at this time"
    return f"give cgotel what it needs to see the next one: {', '.join(silences)}"
