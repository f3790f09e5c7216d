"""Sweeps as serialised ExportMetricsServiceRequests, one ResourceMetrics an entity."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias
from weakref import WeakValueDictionary

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
from opentelemetry.proto.metrics.v1.metrics_pb2 import ResourceMetrics, ScopeMetrics
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from cgotel.model import Entity, Reading, Series, Sweep
from cgotel.outputs.otlp import wire
from cgotel.outputs.otlp.attributes import key_values
from cgotel.outputs.otlp.batch import Batch, Record, batches
from cgotel.outputs.otlp.layout import Layout, Stamps, by_instrument, stamps
from cgotel.outputs.otlp.resources import Resources
from cgotel.outputs.otlp.temporality import Deltas

SCHEMA_URL = "https://opentelemetry.io/schemas/1.44.0"

Key: TypeAlias = tuple[str, str]
"""The kind and the key of an entity."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class _Layouts:
    """The layouts of a set of series: one, or several where one would be larger than a request."""

    each: list[Layout]


@dataclass(slots=True)
class _Kept:
    """An entity between two sweeps."""

    entity: Entity
    resource: bytes
    parts: tuple[tuple[Series, ...], ...]
    layouts: list[_Layouts]


class Encoder:
    """Turns sweeps into requests of at most ``limit`` bytes before compression.

    What belongs to an entity is prepared when its series change and only filled in otherwise.
    ``invalid`` counts the points that were left out because the wire has no place for their value,
    or because their reading could not be encoded at all.
    """

    def __init__(self, resources: Resources, version: str, limit: int, deltas: Deltas | None = None) -> None:
        self._resources = resources
        self._limit = limit
        self._deltas = deltas
        scope = InstrumentationScope(name="cgotel", version=version)
        self._scope = ScopeMetrics(scope=scope, schema_url=SCHEMA_URL).SerializeToString()
        self._kept: dict[Key, _Kept] = {}
        self._layouts: WeakValueDictionary[tuple[Series, ...], _Layouts] = WeakValueDictionary()
        self.invalid = 0
        self._told: set[str] = set()

    def encode(self, sweep: Sweep) -> Iterable[Batch]:
        """The sweep as requests, split between entities; within one that is larger than a request."""
        return batches(self._records(sweep), self._limit)

    def _records(self, sweep: Sweep) -> Iterator[Record]:
        groups = _by_entity(sweep.readings)
        for key, readings in groups.items():
            yield from self._guarded(key, readings)
        for entity in sweep.ended:
            key = (entity.kind, entity.key)
            if key not in groups:
                yield from self._end(key, sweep.time_ns)

    def _guarded(self, key: Key, readings: list[Reading]) -> list[Record]:
        """The records of an entity without the readings that cannot be encoded, whoever gave them."""
        invalid = self.invalid
        try:
            return self._entity(key, readings)
        except Exception as error:  # noqa: BLE001 - it must cost no other entity's points
            self.invalid = invalid
            fault = error
        sound = [reading for reading in readings if self._is_sound(reading)]
        if len(sound) == len(readings):
            sound = []  # it is none of them alone
        self._leave_out_readings([one for one in readings if not any(one is s for s in sound)], fault)
        return self._guarded(key, sound) if sound else []

    def _is_sound(self, reading: Reading) -> bool:
        """Whether a reading can be encoded by itself; a value alone may still have no place."""
        entity = reading.entity
        try:
            key_values(self._resources.of(entity).items())
            stamps(reading.time_ns, entity.began_ns, entity.began_ns)
            self._laid_out(reading.series)
            if self._deltas is not None:
                Deltas(0).of(entity, [reading])
            return len(reading.values) == len(reading.series)
        except Exception:  # noqa: BLE001 - the question is whether there is one
            return False

    def _entity(self, key: Key, readings: list[Reading]) -> list[Record]:
        """The records of an entity, or an error that leaves everything as it was."""
        for reading in readings:
            if len(reading.values) != len(reading.series):
                raise ValueError(f"{len(reading.series)} series, and {len(reading.values)} values")
        entity = readings[0].entity
        if self._deltas is None:
            return self._encoded(key, entity, readings, entity.began_ns)
        deltas, since_ns = self._deltas.of(entity, readings)
        try:
            return self._encoded(key, entity, [reading for reading in deltas if reading.series], since_ns)
        except Exception:
            self._deltas.undo()
            raise

    def _encoded(
        self, key: Key, entity: Entity, readings: list[Reading], since_ns: int | None
    ) -> list[Record]:
        if not readings:
            return []  # counters alone, and this sweep only sets their ground
        parts = tuple([reading.series for reading in readings])
        kept = self._kept.get(key)
        if kept is not None and kept.parts == parts and _same(kept.entity, entity):
            return list(self._filled(kept, readings, since_ns))
        renewed = self._prepared(entity, parts)
        records = list(self._filled(renewed, readings, since_ns))
        self._kept[key] = renewed
        if kept is None:
            return records
        return [*self._stale(self._vanished(kept, renewed), readings[0].time_ns), *records]

    def _prepared(self, entity: Entity, parts: tuple[tuple[Series, ...], ...]) -> _Kept:
        attributes = self._resources.of(entity)
        resource = ResourceMetrics(
            resource=Resource(attributes=key_values(attributes.items())), schema_url=SCHEMA_URL
        )
        return _Kept(entity, resource.SerializeToString(), parts, [self._laid_out(part) for part in parts])

    def _laid_out(self, series: tuple[Series, ...]) -> _Layouts:
        layouts = self._layouts.get(series)
        if layouts is None:
            layouts = _Layouts(self._fitted(series, by_instrument(series)))
            self._layouts[series] = layouts
        return layouts

    def _fitted(self, series: tuple[Series, ...], order: list[int]) -> list[Layout]:
        layout = Layout(series, order, self._deltas is not None)
        if layout.size <= self._limit or len(order) < 2:
            return [layout]
        middle = len(order) // 2
        return self._fitted(series, order[:middle]) + self._fitted(series, order[middle:])

    def _filled(self, kept: _Kept, readings: list[Reading], since_ns: int | None) -> Iterator[Record]:
        """One record, or several if together they were larger than a request."""
        metrics: list[bytes] = []
        size = points = 0
        for reading, layouts in zip(readings, kept.layouts, strict=True):
            stamped = stamps(reading.time_ns, kept.entity.began_ns, since_ns)
            for layout in layouts.each:
                if metrics and size + layout.size > self._limit:
                    yield self._record(kept.resource, metrics, points)
                    metrics, size, points = [], 0, 0
                filled, count = self._fill(layout, reading, stamped)
                metrics.append(filled)
                size += len(filled)
                points += count
        if points:
            yield self._record(kept.resource, metrics, points)

    def _fill(self, layout: Layout, reading: Reading, stamped: Stamps) -> tuple[bytes, int]:
        filled = layout.fill(reading.values, stamped)
        if filled is not None:
            return filled, len(layout.series)
        filled, unfit = layout.salvage(reading.values, stamped)
        self._leave_out(reading, unfit)
        return filled, len(layout.series) - len(unfit)

    def _leave_out(self, reading: Reading, unfit: list[Series]) -> None:
        self.invalid += len(unfit)
        for series in unfit:
            name = series.instrument.name
            if name not in self._told:
                self._told.add(name)
                log.warning(
                    "%s %s: a point of %s (%s) is left out: its value is no finite number of type %s",
                    reading.entity.kind,
                    reading.entity.key,
                    name,
                    series.source,
                    series.instrument.number,
                )

    def _leave_out_readings(self, readings: list[Reading], error: Exception) -> None:
        for reading in readings:
            self.invalid += len(reading.series)
            kind = reading.entity.kind
            if kind not in self._told:
                self._told.add(kind)
                log.warning("%s %s: a reading is left out: %s", kind, reading.entity.key, error)

    def _end(self, key: Key, time_ns: int) -> Iterator[Record]:
        """The last points of an entity, and nothing kept of it."""
        if self._deltas is not None:
            self._deltas.forget(key)
        kept = self._kept.pop(key, None)
        if kept is not None:
            yield from self._stale(kept, time_ns)

    def _vanished(self, kept: _Kept, renewed: _Kept) -> _Kept:
        """What of an entity is there no longer: some of its series, or all under its old resource."""
        if kept.resource != renewed.resource:
            return kept
        still = {series for part in renewed.parts for series in part}
        gone = tuple([series for part in kept.parts for series in part if series not in still])
        layouts = [self._laid_out(gone)] if gone else []
        return _Kept(kept.entity, kept.resource, (gone,), layouts)

    def _stale(self, kept: _Kept, time_ns: int) -> Iterator[Record]:
        """Points that end the series of an entity."""
        stamped = stamps(time_ns, kept.entity.began_ns, kept.entity.began_ns)
        for layouts in kept.layouts:
            for layout in layouts.each:
                yield self._record(kept.resource, [layout.stale(stamped)], len(layout.series))

    def _record(self, resource: bytes, metrics: list[bytes], points: int) -> Record:
        scope_size = len(self._scope) + sum(map(len, metrics))
        scope_head = wire.head(ResourceMetrics.SCOPE_METRICS_FIELD_NUMBER, scope_size)
        size = len(resource) + len(scope_head) + scope_size
        head = wire.head(ExportMetricsServiceRequest.RESOURCE_METRICS_FIELD_NUMBER, size)
        return Record(b"".join((head, resource, scope_head, self._scope, *metrics)), points)


def _same(one: Entity, other: Entity) -> bool:
    return one is other or one == other


def _by_entity(readings: Iterable[Reading]) -> dict[Key, list[Reading]]:
    """Readings that have points, those of one entity together."""
    groups: dict[Key, list[Reading]] = {}
    for reading in readings:
        if reading.series:
            groups.setdefault((reading.entity.kind, reading.entity.key), []).append(reading)
    return groups
