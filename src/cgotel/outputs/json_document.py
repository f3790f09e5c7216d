"""A sweep as one JSON document: every number in the kernel's unit and in OpenTelemetry's.

The schema is described in docs/snapshot.md; `VERSION` changes when a reader of it could break.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from cgotel.contract import SourceStatus
from cgotel.model import Entity, Number, Reading, Series, Sweep
from cgotel.outputs import plain
from cgotel.outputs.measured import by_entity

VERSION = 1

_NANOSECONDS = 1_000_000_000
_LOG = logging.getLogger(__name__)


def document(sweep: Sweep, sources: Iterable[SourceStatus], host: Mapping[str, str]) -> bytes:
    """The document, indented, with a newline at its end. ``host`` says which machine this is."""
    content = {
        "version": VERSION,
        "time": timestamp(sweep.time_ns),
        "host": host,
        "entities": [_entity(readings) for readings in by_entity(_writable(sweep.readings)).values()],
        "sources": [
            {"name": s.name, "state": s.state.value, "reason": s.reason, "remedy": s.remedy} for s in sources
        ],
    }
    return encoded(content)


def encoded(content: Any) -> bytes:
    """Plain data as indented JSON; text that is no valid Unicode keeps its bytes as escapes."""
    try:
        data = msgspec.json.encode(content)
    except UnicodeEncodeError:
        data = msgspec.json.encode(_valid(content))
    return msgspec.json.format(data, indent=2) + b"\n"


def timestamp(time_ns: int) -> str:
    """Unix time in nanoseconds as RFC 3339 in UTC."""
    seconds, nanoseconds = divmod(time_ns, _NANOSECONDS)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{nanoseconds:09}Z"


def _writable(readings: Iterable[Reading]) -> Iterator[Reading]:
    """The readings without what JSON could not hold, which is told by one line of the log."""
    left_out = 0
    for reading in readings:
        points = [point for point in reading.points if _is_writable(reading.entity, *point)]
        left_out += len(reading.values) - len(points)
        if points or not reading.values:
            yield Reading.of(reading.entity, reading.time_ns, points)
    if left_out:
        _LOG.warning("%d points are left out: no finite number, or attributes of no plain value", left_out)


def _is_writable(entity: Entity, series: Series, raw: Number) -> bool:
    plain_attributes = plain.fits(entity.attributes.items()) and plain.fits(series.attributes)
    return plain_attributes and plain.number(series, raw) is not None


def _entity(readings: list[Reading]) -> dict[str, Any]:
    entity: Entity = readings[0].entity
    return {
        "kind": entity.kind,
        "key": entity.key,
        "attributes": dict(entity.attributes),
        "began": None if entity.began_ns is None else timestamp(entity.began_ns),
        "metrics": [_metric(series, raw) for reading in readings for series, raw in reading.points],
    }


def _metric(series: Series, raw: Number) -> dict[str, Any]:
    instrument = series.instrument
    return {
        "name": instrument.name,
        "unit": instrument.unit,
        "kind": instrument.kind,
        "attributes": dict(series.attributes),
        "value": series.convert(raw),
        "source": series.source,
        "raw": raw,
    }


def _valid(content: Any) -> Any:
    if isinstance(content, str):
        return content.encode("utf-8", "backslashreplace").decode()
    if isinstance(content, Mapping):
        return {_valid(key): _valid(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_valid(value) for value in content]
    return content
