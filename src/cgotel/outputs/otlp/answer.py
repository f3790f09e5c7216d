"""What came of one request, whatever the protocol."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse

from cgotel.outputs.otlp.signals import METRICS, Signal

_SHOWN = 200


class Outcome(enum.StrEnum):
    """How a request ended (opentelemetry-proto, docs/specification.md, "Failures")."""

    DELIVERED = "delivered"
    RETRY = "retry"  # not taken this time
    REFUSED = "refused"  # never taken: it must not be sent again
    TOO_LARGE = "too_large"  # taken if it were smaller


@dataclass(frozen=True, slots=True)
class Answer:
    """The end of one request.

    ``retry_after_s`` is what the receiver asked for. ``rejected`` counts the items of a delivered
    request that it did not take (partial success); ``reason`` is its word on that.
    """

    outcome: Outcome
    reason: str = ""
    retry_after_s: float | None = None
    rejected: int = 0


def retry(reason: str, after_s: float | None = None) -> Answer:
    """To be sent again."""
    return Answer(Outcome.RETRY, reason, after_s)


def refused(reason: str) -> Answer:
    """Not to be sent again."""
    return Answer(Outcome.REFUSED, reason)


def too_large(reason: str) -> Answer:
    """To be sent again in smaller parts."""
    return Answer(Outcome.TOO_LARGE, reason)


def delivered(signal: Signal, body: bytes) -> Answer:
    """A success, if its body says so; a body that is no OTLP response comes from something else."""
    try:
        rejected, message = _partial_success(signal, body)
    except DecodeError:
        return refused(f"the answer is not OTLP: {shown(body)}")
    return partial_success(rejected, message)


def partial_success(rejected: int, message: str) -> Answer:
    """A success, and what the receiver says of the items that it did not take."""
    return Answer(Outcome.DELIVERED, message, rejected=rejected)


def status_message(body: bytes) -> str:
    """The message of a google.rpc.Status, as OTLP/HTTP sends it with an error."""
    from google.rpc.status_pb2 import Status

    try:
        return shown(Status.FromString(body).message.encode())
    except DecodeError:
        return shown(body)


def shown(body: bytes) -> str:
    """The beginning of an answer, for a message."""
    text = body[:_SHOWN].decode("utf-8", "replace")
    return "".join(c if c.isprintable() else " " for c in text).strip() or "(empty)"


def _partial_success(signal: Signal, body: bytes) -> tuple[int, str]:
    if signal is METRICS:
        metrics = ExportMetricsServiceResponse.FromString(body).partial_success
        return metrics.rejected_data_points, metrics.error_message
    logs = ExportLogsServiceResponse.FromString(body).partial_success
    return logs.rejected_log_records, logs.error_message
