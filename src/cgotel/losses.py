"""Sources that give nothing, grouped by reason: sixty files behind one missing controller are one loss."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from cgotel.contract import SourceStatus, State

_FEW = 2
_CONTROLLERS = ("memory", "io", "cpu", "pids")
_WEIGHTS = {State.FAILED: 0, State.DENIED: 1, State.MASKED: 2, State.OFF: 3, State.ABSENT: 3}


class Loss(NamedTuple):
    """Sources that are silent for one and the same reason."""

    state: State
    reason: str
    remedies: tuple[str, ...]
    names: tuple[str, ...]


def losses(statuses: Iterable[SourceStatus]) -> list[Loss]:
    """Everything that is not measured: what went wrong first, then what costs most sources.

    What is gone is no loss: its owner has ended.
    """
    groups: dict[tuple[State, str], list[SourceStatus]] = {}
    for status in statuses:
        if status.state in _WEIGHTS:
            groups.setdefault((status.state, status.reason), []).append(status)
    found = [
        Loss(
            state,
            reason,
            tuple(dict.fromkeys(status.remedy for status in group if status.remedy)),
            tuple(status.name for status in group),
        )
        for (state, reason), group in groups.items()
    ]
    return sorted(found, key=lambda loss: (_WEIGHTS[loss.state], -len(loss.names), loss.reason))


def brief(names: Iterable[str]) -> list[str]:
    """Names of files, with those of one controller (``memory.max``, ``memory.high``, ...) as one word."""
    by_controller: dict[str, list[str]] = {}
    for name in names:
        by_controller.setdefault(name.partition(".")[0], []).append(name)
    return [
        word
        for controller, files in sorted(by_controller.items(), key=_importance)
        for word in (files if len(files) <= _FEW else [controller])
    ]


def _importance(item: tuple[str, list[str]]) -> tuple[int, str]:
    controller = item[0]
    place = _CONTROLLERS.index(controller) if controller in _CONTROLLERS else len(_CONTROLLERS)
    return place, controller
