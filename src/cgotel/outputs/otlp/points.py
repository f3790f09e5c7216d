"""What the output says of itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache

from cgotel.model import Instrument, Point, Series
from cgotel.outputs.otlp.answer import Outcome
from cgotel.outputs.otlp.sender import Sender

REQUESTS = Instrument(
    "cgotel.export.requests", "counter", "{request}", "Requests sent over OTLP, by how they ended"
)
DROPPED = Instrument(
    "cgotel.export.dropped",
    "counter",
    "{item}",
    "Data points or log records that were not delivered, and why",
)
QUEUE_USAGE = Instrument(
    "cgotel.export.queue.usage", "updowncounter", "By", "Requests that wait for the receiver, compressed"
)
SUCCESS_AGE = Instrument(
    "cgotel.export.success.age", "gauge", "s", "Time since a request was last delivered", "double"
)

INSTRUMENTS = (REQUESTS, DROPPED, QUEUE_USAGE, SUCCESS_AGE)

REASONS = ("queue_full", "refused", "given_up", "rejected")
"""Why items were dropped: pushed out by newer ones, refused with their request, tried for too long,
or rejected out of a request that was taken."""

INVALID = "invalid"
"""Points whose value has no place on the wire."""


def points(senders: Iterable[Sender], invalid: int) -> Iterator[Point]:
    """The points of this moment; ``invalid`` are data points that never came into a request."""
    for sender in senders:
        signal = sender.target.signal.name
        for outcome in Outcome:
            yield _series(REQUESTS, signal, "cgotel.export.outcome", outcome.value), sender.requests[outcome]
        for reason in REASONS:
            yield _series(DROPPED, signal, "cgotel.export.reason", reason), sender.dropped[reason]
        yield _series(QUEUE_USAGE, signal), sender.queued_bytes
        age_s = sender.success_age_s()
        if age_s is not None:
            yield _series(SUCCESS_AGE, signal), age_s
    yield _series(DROPPED, "metrics", "cgotel.export.reason", INVALID), invalid


@cache
def _series(instrument: Instrument, signal: str, attribute: str = "", value: str = "") -> Series:
    attributes = {"cgotel.export.signal": signal}
    if attribute:
        attributes[attribute] = value
    return instrument.series(instrument.name, attributes=attributes)
