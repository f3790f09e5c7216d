"""Which kernel this is: information only, for what is there is looked for and never concluded."""

from __future__ import annotations

from collections.abc import Iterator

from cgotel.doctor.facts import Facts
from cgotel.doctor.finding import Finding, Level

CHECK = "kernel"


def check(facts: Facts) -> Iterator[Finding]:
    """The release."""
    yield Finding(CHECK, Level.NOTE, f"Linux {facts.kernel}")
