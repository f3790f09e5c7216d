"""The two signals of OTLP that cgotel sends, and where they go."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Signal:
    """A signal by its OTLP names (opentelemetry-proto, docs/specification.md)."""

    name: Literal["metrics", "logs"]
    items: str
    """What a request of it counts, for messages."""
    path: str
    """Below a base endpoint, over HTTP."""
    method: str
    """The unary call, over gRPC."""


_COLLECTOR = "/opentelemetry.proto.collector"

METRICS = Signal("metrics", "points", "/v1/metrics", f"{_COLLECTOR}.metrics.v1.MetricsService/Export")
LOGS = Signal("logs", "log records", "/v1/logs", f"{_COLLECTOR}.logs.v1.LogsService/Export")
