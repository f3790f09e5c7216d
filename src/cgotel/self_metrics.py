"""What the agent says of itself: how long sweeps take, what failed, what was left out, what it costs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping

from cgotel.contract import SourceStatus
from cgotel.faults import Faults
from cgotel.model import Entity, Instrument, Point, Series
from cgotel.sweeper import Sweeper

SWEEP_DURATION = Instrument("cgotel.sweep.duration", "gauge", "s", "Time the last sweep took", "double")
SWEEP_POINTS = Instrument("cgotel.sweep.points", "gauge", "{point}", "Points of the last sweep")
SERIES_DROPPED = Instrument(
    "cgotel.series.dropped", "gauge", "{series}", "Series that the last sweep left out: [agent] max_series"
)
COLLECTOR_DURATION = Instrument(
    "cgotel.collector.duration", "gauge", "s", "Time a collector took in the last sweep", "double"
)
COLLECTOR_ERRORS = Instrument("cgotel.collector.errors", "counter", "{error}", "Faults of a collector")
OUTPUT_ERRORS = Instrument("cgotel.output.errors", "counter", "{error}", "Faults of an output")
WATCHER_ERRORS = Instrument("cgotel.watcher.errors", "counter", "{error}", "Faults of a watcher")
EVIDENCE_DROPPED = Instrument(
    "cgotel.evidence.dropped", "counter", "{piece}", "Evidence that came faster than it could be taken in"
)
EVENTS_WAITING = Instrument(
    "cgotel.events.waiting", "updowncounter", "{event}", "Events that an output has still to take"
)
EVENTS_DROPPED = Instrument(
    "cgotel.events.dropped", "counter", "{event}", "Events that waited for too long behind too many others"
)
SOURCE_STATUS = Instrument("cgotel.source.status", "updowncounter", "1", "The state that a source is in")
CPU_TIME = Instrument("process.cpu.time", "counter", "s", "CPU time of the agent itself", "double")
MEMORY_USAGE = Instrument(
    "process.memory.usage", "updowncounter", "By", "Resident memory of the agent itself"
)

INSTRUMENTS = (
    SWEEP_DURATION,
    SWEEP_POINTS,
    SERIES_DROPPED,
    COLLECTOR_DURATION,
    COLLECTOR_ERRORS,
    OUTPUT_ERRORS,
    WATCHER_ERRORS,
    EVIDENCE_DROPPED,
    EVENTS_WAITING,
    EVENTS_DROPPED,
    SOURCE_STATUS,
    CPU_TIME,
    MEMORY_USAGE,
)

_NANOSECONDS = 1_000_000_000


class SelfMetrics:
    """Makes the agent's own points."""

    def __init__(self) -> None:
        import psutil

        self._process = psutil.Process()
        self._series: dict[tuple[str, str], Series] = {}
        began_ns = int(self._process.create_time() * _NANOSECONDS)
        self.entity = Entity("agent", f"cgotel@{os.getpid()}", {"process.pid": os.getpid()}, began_ns)

    def points(
        self,
        sweeper: Sweeper,
        sources: Iterable[SourceStatus],
        points: int,
        output_faults: Mapping[str, Faults],
    ) -> Iterator[Point]:
        """Everything the agent says of itself after a sweep of so many points."""
        yield self._plain(SWEEP_DURATION, _NANOSECONDS), sweeper.duration_ns
        yield self._plain(SWEEP_POINTS), points
        yield self._plain(SERIES_DROPPED), sweeper.budget.dropped
        for running in sweeper.running:
            name = running.collector.name
            yield (
                self._of(COLLECTOR_DURATION, "cgotel.collector.name", name, _NANOSECONDS),
                running.duration_ns,
            )
            yield self._of(COLLECTOR_ERRORS, "cgotel.collector.name", name), running.faults.count
        for name, faults in output_faults.items():
            yield self._of(OUTPUT_ERRORS, "cgotel.output.name", name), faults.count
        for status in sources:
            yield self._source(status), 1
        yield from self._own_cost()

    def of_events(self, waiting: int, dropped: int) -> Iterator[Point]:
        """How events fare on their way to the outputs."""
        yield self._plain(EVENTS_WAITING), waiting
        yield self._plain(EVENTS_DROPPED), dropped

    def of_inquiry(self, faults: Mapping[str, int], dropped: int) -> Iterator[Point]:
        """How watchers fare."""
        for name, count in faults.items():
            yield self._of(WATCHER_ERRORS, "cgotel.watcher.name", name), count
        yield self._plain(EVIDENCE_DROPPED), dropped

    def _own_cost(self) -> Iterator[Point]:
        with self._process.oneshot():
            times = self._process.cpu_times()
            yield self._of(CPU_TIME, "cpu.mode", "user"), times.user
            yield self._of(CPU_TIME, "cpu.mode", "system"), times.system
            yield self._plain(MEMORY_USAGE), self._process.memory_info().rss

    def _source(self, status: SourceStatus) -> Series:
        key = (f"source {status.name}", status.state.value)
        if key not in self._series:
            attributes = {"cgotel.source.name": status.name, "cgotel.source.state": status.state.value}
            self._series[key] = SOURCE_STATUS.series("cgotel.source.status", attributes=attributes)
        return self._series[key]

    def _of(self, instrument: Instrument, attribute: str, value: str, divisor: int = 1) -> Series:
        key = (instrument.name, value)
        if key not in self._series:
            self._series[key] = instrument.series(instrument.name, divisor, {attribute: value})
        return self._series[key]

    def _plain(self, instrument: Instrument, divisor: int = 1) -> Series:
        key = (instrument.name, "")
        if key not in self._series:
            self._series[key] = instrument.series(instrument.name, divisor)
        return self._series[key]
