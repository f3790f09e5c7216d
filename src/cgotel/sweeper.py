"""One sweep: every collector asked in turn, each on its own risk, and what came of it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from cgotel import sound
from cgotel.budget import SeriesBudget
from cgotel.clock import Instant, now
from cgotel.contract import Collector, SourceStatus, State, Tick, Unavailable
from cgotel.faults import Faults
from cgotel.model import Entity, Event, Reading, Sweep

T = TypeVar("T")

log = logging.getLogger(__name__)

_FIRST_RETRY_NS = 10 * 10**9
_LAST_RETRY_NS = 600 * 10**9


@dataclass(slots=True)
class Running:
    """One collector and how it fares; ``own``: it is part of cgotel, and not a plugin's."""

    collector: Collector
    status: SourceStatus
    faults: Faults
    duration_ns: int = 0
    retry_at_ns: int = 0
    retry_after_ns: int = _FIRST_RETRY_NS
    entities: dict[tuple[str, str], Entity] = field(default_factory=dict)

    @property
    def own(self) -> bool:
        return type(self.collector).__module__.startswith("cgotel.")


class Sweeper:
    """Asks collectors for their readings; one that fails costs its own readings only."""

    def __init__(
        self, collectors: Sequence[Collector], ceiling: int, stop: threading.Event | None = None
    ) -> None:
        self._stop = stop or threading.Event()
        self.busy_with = ""
        self.running = [
            Running(c, SourceStatus(c.name, State.OFF, "not started"), Faults(f"collector {c.name}"))
            for c in collectors
        ]
        self.budget = SeriesBudget(ceiling)
        self.duration_ns = 0
        self._sweeps = 0
        self._told_dropped = False

    def sweep(self, instant: Instant) -> Sweep:
        """The readings of this instant, and the entities that ended since the last sweep."""
        tick = Tick(instant.time_ns, instant.monotonic_ns, self._sweeps)
        self._sweeps += 1
        ended: list[Entity] = []
        readings: list[Reading] = []
        for running in self.running:
            self.busy_with = f"collector {running.collector.name}"
            readings += self._collect(running, tick, ended)
        self.busy_with = ""
        admitted = list(self.budget.admit(readings))
        self._tell_dropped()
        self.duration_ns = now().monotonic_ns - instant.monotonic_ns
        return Sweep(tick.time_ns, admitted, tuple(ended))

    def events(self) -> Iterator[Event]:
        """What the collectors noticed during the last sweep."""
        for running in self.running:
            if running.status.state is State.OK:
                yield from _told(running, Event, running.collector.events)

    def sources(self) -> Iterator[SourceStatus]:
        """Every source behind every collector, with its state."""
        for running in self.running:
            yield running.status
            if running.status.state is State.OK:
                yield from _told(running, SourceStatus, running.collector.sources)

    def close(self) -> None:
        """Close every collector."""
        for running in self.running:
            for _ in _guarded(running, partial(_closed, running.collector)):
                pass

    def _tell_dropped(self) -> None:
        dropped = self.budget.dropped
        if dropped and not self._told_dropped:
            log.warning(
                "%d series are left out: more than [agent] max_series = %d; raise it, or narrow "
                "[collectors.cgroup] by include, exclude, kinds or max_depth",
                dropped,
                self.budget.ceiling,
            )
        self._told_dropped = dropped > 0

    def _collect(self, running: Running, tick: Tick, ended: list[Entity]) -> list[Reading]:
        if not self._started(running, tick):
            return []
        began_ns = now().monotonic_ns
        faults = running.faults.count
        readings: list[Reading] = []
        for reading in _guarded(running, lambda: _sound(running, running.collector.collect(tick))):
            readings.append(reading)
            if self._stop.is_set():
                break
        running.duration_ns = now().monotonic_ns - began_ns
        entities = {(r.entity.kind, r.entity.key): r.entity for r in readings}
        if faults == running.faults.count and not self._stop.is_set():
            ended += [e for key, e in running.entities.items() if key not in entities]
            running.entities = entities
        else:
            running.entities |= entities  # what a sweep that was cut short did not reach has not ended
        return readings

    def _started(self, running: Running, tick: Tick) -> bool:
        if running.status.state is State.OK:
            return True
        if tick.monotonic_ns < running.retry_at_ns:
            return False
        try:
            running.collector.start()
        except Unavailable as unavailable:
            self._postpone(running, tick, unavailable.status)
            return False
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a plugin may raise anything
            running.faults.count += 1
            reason = f"{type(error).__name__}: {error}"
            self._postpone(running, tick, SourceStatus(running.collector.name, State.FAILED, reason))
            return False
        running.status = SourceStatus(running.collector.name, State.OK)
        running.retry_after_ns = _FIRST_RETRY_NS
        return True

    def _postpone(self, running: Running, tick: Tick, status: SourceStatus) -> None:
        if status != running.status:
            log.warning("%s: %s: %s", running.collector.name, status.state, _advice(status))
        running.status = status
        running.retry_at_ns = tick.monotonic_ns + running.retry_after_ns
        running.retry_after_ns = min(2 * running.retry_after_ns, _LAST_RETRY_NS)


def _guarded(running: Running, give: Callable[[], Iterable[T]]) -> Iterator[T]:
    """What a collector gives until it raises; the fault is counted, and told when it is a new one."""
    try:
        yield from give()
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a plugin may raise anything
        running.faults.note(error)


def _sound(running: Running, readings: Iterable[Reading]) -> Iterator[Reading]:
    """The readings that can be relied on; of a plugin's, one that cannot costs itself only."""
    if running.own:
        yield from readings
        return
    for reading in readings:
        try:
            sound.check(reading)
        except (TypeError, ValueError) as error:
            running.faults.note(error)
        else:
            yield reading


def _told(running: Running, kind: type[T], give: Callable[[], Iterable[T]]) -> Iterator[T]:
    """What a collector tells besides its readings, as long as it is of that kind."""
    for told in _guarded(running, give):
        if isinstance(told, kind):
            yield told
        else:
            running.faults.note(TypeError(f"gave {told!r} for a {kind.__name__}"))


def _advice(status: SourceStatus) -> str:
    return f"{status.reason}; {status.remedy}" if status.remedy else status.reason


def _closed(collector: Collector) -> Iterable[None]:
    collector.close()
    return ()
