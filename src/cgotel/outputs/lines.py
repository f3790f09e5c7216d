"""A sweep as lines: one for each entity, as long as what is known of it fits on one.

A field is named by the kernel's file and key and holds the kernel's number (``memory.current``,
``cpu.stat.user_usec``), as Telegraf's own ``cgroup`` plugin names them. A series whose source is
the metric's own name has no kernel behind it: it is in the metric's unit, and its attributes,
which its name does not tell, are tags.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cgotel.contract import SourceStatus
from cgotel.model import AttributeValue, Entity, Event, Reading, Series, Severity
from cgotel.outputs import line_protocol as influx
from cgotel.outputs.line_layout import Layout
from cgotel.outputs.names import name_of, path_of

# They change with each start or upgrade of something, and would begin every series anew.
_NO_TAGS = frozenset(("process.linux.cgroup", "process.pid", "os.description", "os.type", "host.arch"))
_SEVERITIES = {
    Severity.INFO: "info",
    Severity.WARN: "warning",
    Severity.ERROR: "error",
    Severity.FATAL: "fatal",
}


class Lines:
    """Writes readings, events and sources as lines.

    ``path_prefix`` goes in front of the ``path`` tag, which is a path from the cgroup root.
    """

    def __init__(self, path_prefix: str = "") -> None:
        self.invalid = 0
        """Points that no line can hold: NaN, an infinity, more than 64 bits."""
        self._path_prefix = path_prefix
        self._layouts: dict[int, Layout] = {}
        self._heads: dict[int, tuple[Entity, str]] = {}

    def of_readings(self, readings: Iterable[Reading]) -> Iterator[str]:
        """The lines of a sweep; what is prepared for entities and series that are gone is forgotten."""
        layouts: dict[int, Layout] = {}
        heads: dict[int, tuple[Entity, str]] = {}
        for reading in readings:
            series, entity = reading.series, reading.entity
            layout = layouts.get(id(series)) or self._layout(series)
            known = heads.get(id(entity)) or self._head(entity)
            layouts[id(series)], heads[id(entity)] = layout, known
            for line, invalid in layout.lines(known[1], reading.values, reading.time_ns):
                self.invalid += invalid
                yield line
        self._layouts, self._heads = layouts, heads

    def of_event(self, event: Event) -> str:
        """An event, as a line of its own measurement: what it says and knows are fields."""
        own = {key: value for key, value in event.attributes.items() if key not in event.entity.attributes}
        known: dict[str, AttributeValue] = {
            "body": event.body,
            "uid": event.uid,
            "severity_number": event.severity,
            "observed_ns": event.observed_ns,
            **own,
        }
        severity = _SEVERITIES.get(event.severity, str(event.severity))
        tags = influx.tags((("event", event.name), ("severity", severity), *self._tags(event.entity)))
        return f"cgotel_event{tags} {_joined(known)} {event.time_ns}\n"

    def of_sources(self, statuses: Iterable[SourceStatus], time_ns: int) -> str:
        """The state of every source, by its name, on one line; none where nothing is known yet."""
        states: dict[str, AttributeValue] = {status.name: status.state.value for status in statuses}
        return f"cgotel_source {_joined(states)} {time_ns}\n" if states else ""

    def _layout(self, series: tuple[Series, ...]) -> Layout:
        known = self._layouts.get(id(series))
        return known if known is not None and known.series is series else Layout(series)

    def _head(self, entity: Entity) -> tuple[Entity, str]:
        known = self._heads.get(id(entity))
        if known is not None and known[0] is entity:
            return known
        measurement = "cgroup" if path_of(entity) is not None else influx.measurement(entity.kind)
        return entity, f"cgotel_{measurement}{influx.tags(self._tags(entity))}"

    def _tags(self, entity: Entity) -> Iterator[tuple[str, AttributeValue]]:
        path = path_of(entity)
        if path is not None:
            yield "path", f"{self._path_prefix}{path}"
            yield "kind", entity.kind
            yield "name", name_of(entity, path)
        for key, value in entity.attributes.items():
            if key not in _NO_TAGS:
                yield key.replace(".", "_"), value


def _joined(known: dict[str, AttributeValue]) -> str:
    """Fields in order, as many as fit."""
    fields: list[str] = []
    room = influx.MOST_FIELD_BYTES
    for name, value in known.items():
        written = influx.field(value)
        pair = "" if written is None else f"{influx.key(name)}={written}"
        room -= len(pair.encode()) + 1
        if pair and room >= 0:
            fields.append(pair)
    return ",".join(fields)
