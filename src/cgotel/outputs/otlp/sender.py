"""Sends the requests of one signal from its own thread, so that nobody waits for a receiver."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable

from cgotel.outputs.otlp.answer import Answer, Outcome, retry
from cgotel.outputs.otlp.batch import Batch
from cgotel.outputs.otlp.environment import LONGEST_S
from cgotel.outputs.otlp.queue import BatchQueue
from cgotel.outputs.otlp.retry import FIRST_S, Backoff
from cgotel.outputs.otlp.settings import Target
from cgotel.outputs.otlp.transport import Transport

log = logging.getLogger(__name__)


class Sender:
    """Takes requests, sends them in order, and tries again what a receiver may take later.

    A request is tried for ``retry_for_s``; meanwhile the queue keeps those behind it, and drops the
    oldest when it is full. `pause` and `turn` are all there is to it: the thread only calls them.
    """

    def __init__(
        self,
        target: Target,
        transport: Transport,
        queue: BatchQueue,
        retry_for_s: float,
        most_items: int = 1,
        backoff: Backoff | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.target = target
        self._transport = transport
        self._queue = queue
        self._retry_for_s = retry_for_s
        self._most_items = most_items
        self._backoff = backoff or Backoff(retry_for_s)
        self._clock = clock
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._in_flight: Batch | None = None
        self._not_before = 0.0
        self._asked_to_wait = False
        self._failing_since: float | None = None
        self._closing_at: float | None = None
        self._told: dict[str, str] = {}
        self.requests: Counter[Outcome] = Counter()
        self.dropped: Counter[str] = Counter()
        self.last_success: float | None = None
        self.undelivered = 0
        """Items that are lost since a request was last delivered, and those it was short of."""

    @property
    def queued_bytes(self) -> int:
        """What waits, as it is kept."""
        return self._queue.size

    def success_age_s(self) -> float | None:
        """Seconds since a request was delivered, None if none was."""
        return None if self.last_success is None else self._clock() - self.last_success

    def start(self) -> None:
        """Begin to send."""
        name = f"cgotel-otlp-{self.target.signal.name}"
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def put(self, batch: Batch) -> None:
        """Take a request; returns at once."""
        with self._changed:
            dropped = self._queue.put(batch)
            if dropped:
                self._lose("queue_full", dropped)
                self._tell("queue_full", "the queue is full, the oldest are dropped")
            self._changed.notify()

    def pause(self) -> float | None:
        """Seconds until there is something to send, None while there is nothing."""
        if not self._queue:
            return None
        return max(0.0, self._not_before - self._clock())

    def turn(self) -> None:
        """Send the oldest request, if it is time."""
        with self._changed:
            if self.pause() != 0.0:
                return
            batch = self._in_flight = self._queue.take(self._most_items)
        answer = self._answer(batch, self._allowance())
        with self._changed:
            if self._in_flight is batch:  # else it was given up meanwhile
                self._settle(batch, answer)
                self._in_flight = None

    def stop(self, timeout_s: float) -> None:
        """Send what is there for at most so many seconds; a receiver's own wish to wait still holds."""
        with self._changed:
            self._closing_at = self._clock() + min(timeout_s, LONGEST_S)
            if not self._asked_to_wait:
                self._not_before = 0.0
                self._backoff.reset()
            self._changed.notify()

    def join(self) -> int:
        """Wait for what `stop` began; returns the number of items that were lost."""
        if self._thread is not None and self._closing_at is not None:
            self._thread.join(max(0.0, self._closing_at - self._clock()))
        with self._changed:
            lost = self._queue.items + (self._in_flight.items if self._in_flight else 0)
            self._queue.clear()
            if self._in_flight is not None:
                self._in_flight.settle(False)
            self._in_flight = None
            self._lose("closed", lost)
        self._transport.close()
        return lost

    def _run(self) -> None:
        while True:
            try:
                if not self._wait():
                    return
                self.turn()
            except Exception as error:  # noqa: BLE001 - a thread that ends would end all export in silence
                self._stumble(error)

    def _stumble(self, error: Exception) -> None:
        """A fault of our own: it costs the request at hand, and a pause so that it costs no CPU."""
        with self._changed:
            batch, self._in_flight = self._in_flight, None
            if batch is not None:
                self._give_up(batch, "given_up", f"{type(error).__name__}: {error}")
            else:
                self._tell("fault", f"{type(error).__name__}: {error}")
            self._changed.wait(FIRST_S)

    def _wait(self) -> bool:
        """Sleep until there is something to send; false when there is nothing to wait for."""
        with self._changed:
            while (pause := self.pause()) != 0.0 and not self._is_over(pause):
                self._changed.wait(None if pause is None else min(pause, LONGEST_S))
            return not self._is_over(pause)

    def _is_over(self, pause: float | None) -> bool:
        """Whether all is sent that can be sent before the end."""
        if self._closing_at is None:
            return False
        return pause is None or self._clock() + pause >= self._closing_at

    def _allowance(self) -> float:
        """Seconds that a request may take from now."""
        if self._closing_at is None:
            return self.target.timeout_s
        return max(0.01, min(self.target.timeout_s, self._closing_at - self._clock()))

    def _answer(self, batch: Batch, timeout_s: float) -> Answer:
        try:
            return self._transport.send(batch, timeout_s)
        except Exception as error:  # noqa: BLE001 - no memory, no thread: it may pass
            return retry(f"{type(error).__name__}: {error}")

    def _settle(self, batch: Batch, answer: Answer) -> None:
        self.requests[answer.outcome] += 1
        self._asked_to_wait = False
        match answer.outcome:
            case Outcome.DELIVERED:
                self._delivered(batch, answer)
            case Outcome.RETRY:
                self._try_again(batch, answer)
            case Outcome.TOO_LARGE if halves := batch.halves():
                self._queue.give_back(*halves)
                self._tell("too_large", f"a request is too large and sent in halves: {answer.reason}")
            case _:
                self._give_up(batch, "refused", answer.reason)

    def _delivered(self, batch: Batch, answer: Answer) -> None:
        rejected = min(max(0, answer.rejected), batch.items)  # a receiver may say anything
        self.last_success = self._clock()
        self._failing_since = None
        self._backoff.reset()
        self.undelivered = 0
        batch.settle(True)
        self._lose("rejected", rejected)
        if rejected or answer.reason:
            items = self.target.signal.items
            self._tell("rejected", f"not all {items} were taken: {answer.reason}")
        elif self._told:
            self._told.clear()
            log.info("%s: delivered", self.target)

    def _try_again(self, batch: Batch, answer: Answer) -> None:
        now = self._clock()
        pause = self._backoff.next_s(answer.retry_after_s)
        self._not_before = now + pause
        self._asked_to_wait = answer.retry_after_s is not None
        if self._failing_since is None:
            self._failing_since = now
        if self._not_before - self._failing_since > self._retry_for_s:
            self._give_up(batch, "given_up", answer.reason)
            return
        self._queue.give_back(batch)
        self._tell("retry", f"{answer.reason}; kept, and tried again")

    def _give_up(self, batch: Batch, why: str, reason: str) -> None:
        self._failing_since = None
        batch.settle(why == "refused")
        self._lose(why, batch.items)
        self._tell(why, f"{reason}; its {self.target.signal.items} are lost")

    def _lose(self, why: str, items: int) -> None:
        self.dropped[why] += items
        self.undelivered += items

    def _tell(self, why: str, text: str) -> None:
        """Log what is wrong, once while it stays the same."""
        if self._told.get(why) != text:
            self._told[why] = text
            log.warning("%s: %s", self.target, text)
