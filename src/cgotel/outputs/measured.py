"""What was measured of one entity, now and in the sweep before, under the kernel's names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from cgotel.model import AttributeValue, Number, Reading

_MICROSECONDS = 1_000_000
_OWNER = "cgroup.limit.owner"

Key: TypeAlias = tuple[str, str]
_Numbers: TypeAlias = dict[str, dict[str, Number]]


def by_entity(readings: Iterable[Reading]) -> dict[Key, list[Reading]]:
    """The readings of each entity: several collectors may tell of the same one."""
    found: dict[Key, list[Reading]] = {}
    for reading in readings:
        found.setdefault((reading.entity.kind, reading.entity.key), []).append(reading)
    return found


class Measured:
    """The numbers of one entity; times as shares of the interval, as seconds where there is none.

    An amount may have an owner, the cgroup behind a limit; ``""`` where it has none.
    """

    __slots__ = ("_before", "_now", "entity", "interval_s")

    def __init__(
        self, now: Sequence[Reading], before: Sequence[Reading] = (), interval_s: float | None = None
    ) -> None:
        self.entity = now[0].entity
        self.interval_s = interval_s
        self._now = _numbers(now)
        self._before = _numbers(before)

    def number(self, source: str, owner: str = "") -> Number | None:
        """The number as the kernel printed it."""
        return self._now.get(source, {}).get(owner)

    def owned(self, source: str) -> Mapping[str, Number]:
        """A source's numbers by owner."""
        return self._now.get(source, {})

    def change(self, source: str, owner: str = "") -> Number | None:
        """By how much a counter rose; None where it fell, or was not there before."""
        now, before = self.number(source, owner), self._before.get(source, {}).get(owner)
        return None if now is None or before is None or now < before else now - before

    def time(self, source: str, owner: str = "") -> float | None:
        """A counter of microseconds: the share of the interval, at most 1; without one, its seconds."""
        if self.interval_s is None:
            total = self.number(source, owner)
            return None if total is None else total / _MICROSECONDS
        changed = self.change(source, owner)
        return None if changed is None else min(1.0, changed / _MICROSECONDS / self.interval_s)


def _numbers(readings: Iterable[Reading]) -> _Numbers:
    found: _Numbers = {}
    for reading in readings:
        for series, raw in zip(reading.series, reading.values, strict=True):
            found.setdefault(series.source, {})[_owner(series.attributes)] = raw
    return found


def _owner(attributes: Sequence[tuple[str, AttributeValue]]) -> str:
    return str(attributes[0][1]) if attributes and attributes[0][0] == _OWNER else ""
