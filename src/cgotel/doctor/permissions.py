"""What this user may not read."""

from __future__ import annotations

from collections.abc import Iterator

from cgotel.contract import State
from cgotel.doctor.facts import Facts
from cgotel.doctor.finding import Finding, Level
from cgotel.losses import losses

CHECK = "permissions"


def check(facts: Facts) -> Iterator[Finding]:
    """Each source that is denied, by reason; without root, that nothing is."""
    who = "root" if facts.uid == 0 else f"user {facts.uid}"
    denied = [loss for loss in losses(facts.sources) if loss.state is State.DENIED]
    for loss in denied:
        yield Finding(
            CHECK,
            Level.LOST,
            f"{who} may not read {len(loss.names)} sources: {loss.reason}",
            "; ".join(loss.remedies),
            loss.names,
        )
    if not denied:
        yield Finding(CHECK, Level.OK, f"{who} may read everything that is there")
