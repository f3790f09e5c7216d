"""Events as log records: SDK data, encoded by the SDK's own exporter package.

They go over cgotel's transport, not the SDK exporter's: that one takes a redirect for a success and
ignores a partial one, and an event that is lost must at least be counted.
"""

from __future__ import annotations

from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.common._log_encoder import encode_logs
from opentelemetry.sdk._logs import ReadableLogRecord
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from cgotel.model import AttributeValue, Event
from cgotel.outputs.otlp.attributes import plain
from cgotel.outputs.otlp.batch import Batch, Record
from cgotel.outputs.otlp.encode import SCHEMA_URL
from cgotel.outputs.otlp.resources import Resources


def log_request(event: Event, resources: Resources, version: str) -> Batch:
    """One event as a request. ``log.record.uid`` lets a receiver recognise a replay."""
    record = LogRecord(
        timestamp=event.time_ns,
        observed_timestamp=event.observed_ns,
        context=Context(),  # no span: none of the agent's own must be taken for its cause
        severity_number=SeverityNumber(event.severity),
        body=plain(event.body),
        event_name=event.name,
        attributes=_clean({**event.attributes, "log.record.uid": event.uid}),
    )
    resource = Resource(_clean(resources.of(event.entity)), SCHEMA_URL)
    scope = InstrumentationScope("cgotel", version, SCHEMA_URL)
    request = encode_logs([ReadableLogRecord(record, resource, scope)])
    return Batch.of([Record(request.SerializeToString(), 1)])


def _clean(attributes: dict[str, AttributeValue]) -> dict[str, AttributeValue]:
    """Text that UTF-8 can hold: the SDK leaves out an attribute that it cannot encode."""
    return {plain(key): _clean_value(value) for key, value in attributes.items()}


def _clean_value(value: AttributeValue) -> AttributeValue:
    if isinstance(value, str):
        return plain(value)
    return tuple(map(plain, value)) if isinstance(value, tuple) else value
