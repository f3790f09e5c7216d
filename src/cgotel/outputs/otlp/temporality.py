"""Counters as deltas, for backends that want them.

Source: opentelemetry-specification, metrics/data-model.md ("Temporality", "Resets and Gaps") and
metrics/sdk_exporters/otlp.md: the preference ``delta`` turns counters into deltas and leaves
updowncounters cumulative; ``lowmemory`` does so for synchronous counters only, and all counters of
cgotel are observed.
"""

from __future__ import annotations

from dataclasses import dataclass

from cgotel.model import Entity, Number, Reading, Series


@dataclass(frozen=True, slots=True)
class _Seen:
    """The counters of an entity as last seen, in the kernel's unit."""

    time_ns: int
    raw: dict[Series, Number]


class Deltas:
    """Remembers the last value of every counter, by entity.

    An entity that began after ``since_ns``, when this output began, counts from its own beginning.
    One that was there before only sets the ground: what it had counted so far was, for all that is
    known, already reported. The same holds for a counter that was away for a sweep.
    """

    def __init__(self, since_ns: int) -> None:
        self._since_ns = since_ns
        self._seen: dict[tuple[str, str], _Seen] = {}
        self._before: tuple[tuple[str, str], _Seen | None] | None = None

    def of(self, entity: Entity, readings: list[Reading]) -> tuple[list[Reading], int | None]:
        """The readings of one entity with deltas for counters, and when these deltas begin."""
        key = (entity.kind, entity.key)
        last = self._seen.get(key)
        self._before = key, last
        newborn = last is None and entity.began_ns is not None and entity.began_ns >= self._since_ns
        now: dict[Series, Number] = {}
        ground = last.raw if last is not None else {}
        out = [_delta(reading, ground, now, newborn) for reading in readings]
        self._seen[key] = _Seen(readings[0].time_ns, now)
        return out, last.time_ns if last is not None else entity.began_ns

    def undo(self) -> None:
        """Take back the last `of`: its readings are not sent."""
        if self._before is None:
            return
        key, last = self._before
        if last is None:
            self.forget(key)
        else:
            self._seen[key] = last

    def forget(self, key: tuple[str, str]) -> None:
        """The entity of this kind and key has ended."""
        self._seen.pop(key, None)


def _delta(reading: Reading, last: dict[Series, Number], now: dict[Series, Number], newborn: bool) -> Reading:
    """One reading with deltas; ``now`` is filled with its counters."""
    kept: list[Series] = []
    values: list[Number] = []
    for series, raw in reading.points:
        if series.instrument.kind != "counter":
            kept.append(series)
            values.append(raw)
            continue
        now[series] = whole = _whole(series, raw)
        before = 0 if newborn else last.get(series)
        if before is not None:
            kept.append(series)
            values.append(whole if whole < before else whole - before)  # a fall: it began again at zero
    if len(kept) == len(reading.series):
        return Reading(reading.entity, reading.time_ns, reading.series, values)
    return Reading(reading.entity, reading.time_ns, tuple(kept), values)


def _whole(series: Series, raw: Number) -> Number:
    """Without what the integer division by the divisor would cut, so that deltas add up."""
    if not isinstance(raw, int | float):
        raise TypeError(f"{series.source} is {raw!r}, no number")  # nor a ground for the next one
    if series.divisor == 1 or series.instrument.number == "double":
        return raw
    return raw - raw % series.divisor
