"""The agent: one loop that sweeps, hands on, and waits for the next beat until it is told to stop."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TypeVar

from cgotel import sound
from cgotel.clock import Instant, now
from cgotel.contract import Lost, Output, OutputEnded, SourceStatus
from cgotel.faults import Faults
from cgotel.inquiry import Inquiry
from cgotel.model import Event, Point, Reading, Sweep, count_points
from cgotel.postman import Postman
from cgotel.self_metrics import SelfMetrics
from cgotel.store import Database, Outbox
from cgotel.sweeper import Sweeper

T = TypeVar("T")

log = logging.getLogger(__name__)

CLOSE_TIMEOUT_S = 5.0


class Agent:
    """Sweeps every ``interval`` seconds and gives each sweep and each event to every output.

    An output that raises is counted and asked again at the next sweep; one that has ended is not.
    """

    def __init__(
        self,
        sweeper: Sweeper,
        outputs: Sequence[Output],
        interval: float,
        clock: Callable[[], Instant] = now,
        outbox: Outbox | None = None,
    ) -> None:
        self._sweeper = sweeper
        self._inquiry: Inquiry | None = None
        self._hand_on = threading.RLock()
        outbox = outbox or Outbox(Database(None), [output.name for output in outputs])
        self._postman = Postman(outbox, outputs, self._went_well)
        self._outputs = tuple(outputs)
        self._interval_ns = int(interval * 1e9)
        self._clock = clock
        self._self_metrics = SelfMetrics()
        self._closing = ""
        self._own_faults = Faults("the agent itself")
        self._faults = {output.name: Faults(f"output {output.name}") for output in outputs}

    def accompany(self, inquiry: Inquiry | None) -> None:
        """Sweep beside an inquiry, if there is one: it sees the sweeps, and its watchers are sources."""
        self._inquiry = inquiry

    def run(self, stop: threading.Event) -> None:
        """Sweep on a steady beat until ``stop`` is set or the last output has ended.

        A beat that was missed is left out.
        """
        self.follow(self._beats(stop))

    def follow(self, triggers: Iterable[object]) -> None:
        """Sweep once for each trigger until there is none any more or the last output has ended."""
        try:
            for _ in triggers:
                self.sweep()
                if not self._outputs:
                    break
        finally:
            self.close()

    @property
    def busy_with(self) -> str:
        """Who is at work: a collector while it is asked, an output while it is closed."""
        return self._sweeper.busy_with or self._closing or "the agent"

    @property
    def faults(self) -> int:
        """How often an output failed, or lost something."""
        return sum(faults.count for faults in self._faults.values())

    def sweep(self) -> Sweep:
        """One sweep, handed to every output."""
        instant = self._clock()
        swept = self._sweeper.sweep(instant)
        sources = list(self._sweeper.sources())
        if self._inquiry is not None:
            self._inquiry.see(swept)
            sources += self._inquiry.sources()
            swept.readings.extend(self._inquiry.readings(swept.time_ns))
        swept.readings.append(self._own_reading(swept, sources))
        with self._hand_on:
            for output in self._outputs:
                self._guarded(output, partial(output.sources, sources))
                self._guarded(output, partial(output.write, swept))
            for event in self._sweeper.events():
                if not self._told_better(event):
                    self.emit(event)
            self._postman.round()
        return swept

    def _told_better(self, event: Event) -> bool:
        return self._inquiry is not None and self._inquiry.tells_better(event)

    def _own_reading(self, swept: Sweep, sources: Sequence[SourceStatus]) -> Reading:
        """What the agent and its outputs say of themselves; one that cannot say it says nothing."""
        points = count_points(swept.readings)
        told: list[Point] = []
        try:
            told += self._self_metrics.points(self._sweeper, sources, points, self._faults)
            told += self._self_metrics.of_events(self._postman.waiting, self._postman.dropped)
            if self._inquiry is not None:
                told += self._self_metrics.of_inquiry(self._inquiry.faults, self._inquiry.dropped)
        except (OSError, MemoryError) as error:
            self._own_faults.note(error)
        for output in self._outputs:
            told += self._guarded(output, partial(self._points_of, output)) or ()
        return Reading.of(self._self_metrics.entity, swept.time_ns, told)

    def _points_of(self, output: Output) -> list[Point]:
        points = list(output.points())
        sound.check(Reading.of(self._self_metrics.entity, 0, points))
        return points

    def emit(self, event: Event) -> None:
        """Give one event to every output, now or as soon as it can take it. From any thread."""
        with self._hand_on:
            self._postman.post(event)

    def close(self) -> None:
        """End the inquiry, let every output send what it holds back, then close the collectors."""
        if self._inquiry is not None:
            self._closing = "the inquiry"
            self._inquiry.close()
        for output in self._outputs:
            self._closing = f"output {output.name}"
            self._guarded(output, partial(output.close, CLOSE_TIMEOUT_S))
        self._sweeper.close()

    def _beats(self, stop: threading.Event) -> Iterator[None]:
        due_ns = self._clock().monotonic_ns
        while not stop.is_set():
            yield
            due_ns += self._interval_ns
            late_ns = self._clock().monotonic_ns - due_ns
            if late_ns > 0:
                due_ns += (late_ns // self._interval_ns + 1) * self._interval_ns
                log.warning("a sweep took longer than the interval of %g s", self._interval_ns / 1e9)
            stop.wait(max(0, due_ns - self._clock().monotonic_ns) / 1e9)

    def _went_well(self, output: Output, act: Callable[[], None]) -> bool:
        before = self._faults[output.name].count
        self._guarded(output, act)
        return self._faults[output.name].count == before

    def _guarded(self, output: Output, act: Callable[[], T]) -> T | None:
        try:
            return act()
        except Lost:
            self._faults[output.name].count += 1
            return None
        except OutputEnded:
            self._outputs = tuple(other for other in self._outputs if other is not output)
            return None
        except (Exception, SystemExit) as error:  # noqa: BLE001 - one output must not stop the others
            self._faults[output.name].note(error)
            return None
