"""A sender on a clock that the test moves, and a transport that answers by a list."""

from __future__ import annotations

import threading

from cgotel.outputs.otlp.answer import partial_success, retry
from cgotel.outputs.otlp.batch import Batch, Record
from cgotel.outputs.otlp.endpoint import Endpoint
from cgotel.outputs.otlp.queue import BatchQueue
from cgotel.outputs.otlp.retry import Backoff
from cgotel.outputs.otlp.sender import Sender
from cgotel.outputs.otlp.settings import Target
from cgotel.outputs.otlp.signals import METRICS

TARGET = Target(METRICS, "http/protobuf", Endpoint(False, "localhost:4318"), {"api-key": "secret"})
DELIVERED = partial_success(0, "")
REFUSED_CONNECTION = retry("Connection refused")


def batch(*items):
    return Batch.of([Record(b"\x0a\x00", count) for count in items])


class Script:
    """A transport that answers by a list, the last answer for ever; an exception is raised."""

    def __init__(self, *answers):
        self._answers = list(answers)
        self.sent, self.timeouts, self.closed = [], [], threading.Event()

    def send(self, batch, timeout_s):
        self.sent.append(batch)
        self.timeouts.append(timeout_s)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close(self):
        self.closed.set()


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


def sender(transport, clock, limit=10_000, retry_for_s=300.0, most_items=1):
    return Sender(
        TARGET, transport, BatchQueue(limit), retry_for_s, most_items, Backoff(300.0, lambda: 0.5), clock
    )


def play(one, clock, turns):
    """So many turns, the pauses between them passing at once; returns these pauses."""
    pauses = []
    for _ in range(turns):
        pause = one.pause()
        if pause is None:
            break
        pauses.append(pause)
        clock.now += pause
        one.turn()
    return pauses
