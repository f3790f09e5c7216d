"""What can be read here and what not, why, and what to do: one file a check, each pure over `Facts`."""

from __future__ import annotations

from cgotel.doctor import (
    controllers,
    descriptors,
    hierarchy,
    kernel,
    memory,
    namespace,
    permissions,
    plugins,
    pressure,
    sources,
    swap,
    witnesses,
)
from cgotel.doctor.facts import Facts
from cgotel.doctor.finding import Finding, Level

__all__ = ["Facts", "Finding", "Level", "examine"]

_CHECKS = (
    hierarchy,
    namespace,
    controllers,
    pressure,
    permissions,
    sources,
    witnesses,
    memory,
    swap,
    descriptors,
    plugins,
    kernel,
)


def examine(facts: Facts) -> list[Finding]:
    """Every finding, what matters most first."""
    order = list(Level)
    found = [finding for check in _CHECKS for finding in check.check(facts)]
    return sorted(found, key=lambda finding: order.index(finding.level))
