"""Every other source that gives nothing, grouped by reason."""

from __future__ import annotations

from collections.abc import Iterator

from cgotel.contract import SourceStatus, State
from cgotel.doctor.facts import Facts
from cgotel.doctor.finding import Finding, Level
from cgotel.losses import Loss, brief, losses

CHECK = "sources"


def check(facts: Facts) -> Iterator[Finding]:
    """What the checks of hierarchy, controllers, pressure, permissions and swap do not explain."""
    for status in facts.collectors:
        if status.state is not State.OK and not (status.name == "cgroup" and facts.roots.cgroup is None):
            yield Finding(CHECK, _level(status.state), f"{status.name}: {_reason(status)}", status.remedy)
    lost = losses(status for status in facts.sources if not _explained(status, facts))
    for loss in lost:
        if loss.remedies or _level(loss.state) is Level.LOST:
            yield Finding(CHECK, _level(loss.state), _told(loss), "; ".join(loss.remedies))
    without = tuple(_told(loss) for loss in lost if not loss.remedies and _level(loss.state) is Level.NOTE)
    if without:
        yield Finding(CHECK, Level.NOTE, "what this kernel or this host does not have", affected=without)
    good = sum(status.state is State.OK for status in facts.sources)
    yield Finding(CHECK, Level.OK, f"{good} sources give numbers")


def _level(state: State) -> Level:
    return Level.NOTE if state in (State.ABSENT, State.OFF) else Level.LOST


def _told(loss: Loss) -> str:
    return f"{', '.join(brief(loss.names))}: {_reason(loss)}"


def _reason(silent: Loss | SourceStatus) -> str:
    return silent.reason or silent.state.value


def _explained(status: SourceStatus, facts: Facts) -> bool:
    controller, _, file = status.name.partition(".")
    if status.state is State.DENIED:
        return True
    if file == "pressure" or status.name.startswith("pressure/"):
        return facts.pressure is not State.OK
    if status.state not in (State.ABSENT, State.OFF):
        return False
    if status.name.startswith(("swaps", "zram")):
        return not facts.swaps
    return controller in facts.missing or bool(facts.withheld(controller))
