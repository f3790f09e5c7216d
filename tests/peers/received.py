"""What the Collector's file exporter wrote: OTLP JSON, one request a line, as flat points and records.

Source: opentelemetry-proto, JSON protobuf encoding: 64-bit integers are strings, zeros are left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

_TEMPORALITY: Mapping[int, Literal["delta", "cumulative"]] = {1: "delta", 2: "cumulative"}
_NO_RECORDED_VALUE = 1


@dataclass(frozen=True, slots=True)
class Point:
    """One data point with all that stands above it; times are Unix times in nanoseconds.

    ``value`` is None for "no recorded value": the series has ended.
    """

    resource: Mapping[str, Any]
    schema_url: str
    scope: str
    name: str
    unit: str
    description: str
    kind: Literal["sum", "gauge"]
    monotonic: bool
    temporality: Literal["delta", "cumulative"] | None
    attributes: Mapping[str, Any]
    value: int | float | None
    start_ns: int | None
    time_ns: int


@dataclass(frozen=True, slots=True)
class Record:
    """One log record with its resource; times are Unix times in nanoseconds."""

    resource: Mapping[str, Any]
    event_name: str
    severity: int
    body: Any
    attributes: Mapping[str, Any]
    time_ns: int
    observed_ns: int


class RequestFile:
    """The requests in a file that is still being written; each line is parsed once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._requests: list[dict[str, Any]] = []

    def requests(self) -> list[dict[str, Any]]:
        """All whole lines so far."""
        if self._path.exists():
            with open(self._path, "rb") as file:
                file.seek(self._offset)
                for line in file:
                    if not line.endswith(b"\n"):
                        break
                    self._offset += len(line)
                    self._requests.append(json.loads(line))
        return self._requests


def points(requests: list[dict[str, Any]]) -> Iterator[Point]:
    """Every data point of sums and gauges, in the order of arrival."""
    for request in requests:
        for resource in request["resourceMetrics"]:
            for scope in resource["scopeMetrics"]:
                for metric in scope["metrics"]:
                    yield from _points(resource, scope, metric)


def records(requests: list[dict[str, Any]]) -> Iterator[Record]:
    """Every log record, in the order of arrival."""
    for request in requests:
        for resource in request["resourceLogs"]:
            attributes = _attributes(resource["resource"])
            for scope in resource["scopeLogs"]:
                for record in scope["logRecords"]:
                    yield _record(attributes, record)


def _points(resource: dict[str, Any], scope: dict[str, Any], metric: dict[str, Any]) -> Iterator[Point]:
    kind: Literal["sum", "gauge"] = "sum" if "sum" in metric else "gauge"
    data = metric[kind]
    for point in data["dataPoints"]:
        yield Point(
            resource=_attributes(resource["resource"]),
            schema_url=resource.get("schemaUrl", ""),
            scope=scope["scope"].get("name", ""),
            name=metric["name"],
            unit=metric.get("unit", ""),
            description=metric.get("description", ""),
            kind=kind,
            monotonic=data.get("isMonotonic", False),
            temporality=_TEMPORALITY.get(data.get("aggregationTemporality", 0)),
            attributes=_attributes(point),
            value=_number(point),
            start_ns=int(point.get("startTimeUnixNano", 0)) or None,
            time_ns=int(point["timeUnixNano"]),
        )


def _number(point: dict[str, Any]) -> int | float | None:
    if point.get("flags", 0) & _NO_RECORDED_VALUE:
        return None
    return int(point["asInt"]) if "asInt" in point else float(point["asDouble"])


def _record(resource: Mapping[str, Any], record: dict[str, Any]) -> Record:
    return Record(
        resource=resource,
        event_name=record.get("eventName", ""),
        severity=record.get("severityNumber", 0),
        body=_value(record["body"]) if record.get("body") else None,
        attributes=_attributes(record),
        time_ns=int(record.get("timeUnixNano", 0)),
        observed_ns=int(record.get("observedTimeUnixNano", 0)),
    )


def _attributes(owner: dict[str, Any]) -> dict[str, Any]:
    return {pair["key"]: _value(pair["value"]) for pair in owner.get("attributes", ())}


def _value(value: dict[str, Any]) -> Any:
    ((kind, content),) = value.items()
    if kind == "intValue":
        return int(content)
    if kind == "arrayValue":
        return tuple(_value(item) for item in content.get("values", ()))
    return content
