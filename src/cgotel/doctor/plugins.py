"""Plugins that could not be loaded."""

from __future__ import annotations

from collections.abc import Iterator

from cgotel.doctor.facts import Facts
from cgotel.doctor.finding import Finding, Level
from cgotel.plugins import RESCUE

CHECK = "plugins"


def check(facts: Facts) -> Iterator[Finding]:
    """Each one that failed."""
    for name, fault in facts.faults.items():
        yield Finding(
            CHECK,
            Level.LOST,
            f"{name} could not be loaded: {fault}",
            f'repair it, or disable it: [plugins] disabled = ["{name}"] ({RESCUE}=none: all but built-ins)',
        )
    if not facts.faults:
        yield Finding(CHECK, Level.OK, "every plugin was loaded")
