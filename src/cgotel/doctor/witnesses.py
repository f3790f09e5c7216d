"""Watchers that cannot see: how sure a verdict on an exit can be here."""

from __future__ import annotations

from collections.abc import Iterator

from cgotel.contract import State
from cgotel.doctor.facts import Facts
from cgotel.doctor.finding import Finding, Level

CHECK = "witnesses"


def check(facts: Facts) -> Iterator[Finding]:
    """Each one that is silent; one that is not on this host at all is but a note."""
    for status in facts.witnesses:
        if status.state is State.OK:
            continue
        level = Level.NOTE if status.state in (State.ABSENT, State.OFF) else Level.RISK
        yield Finding(CHECK, level, f"{status.name}: {status.reason or status.state.value}", status.remedy)
    heard = [status.name for status in facts.witnesses if status.state is State.OK]
    if heard:
        yield Finding(CHECK, Level.OK, f"heard when something ends: {', '.join(heard)}")
    elif facts.witnesses:
        yield Finding(CHECK, Level.RISK, "nobody is heard when something ends: no verdict can be sure")
