"""What cgotel says of itself in collectd. What the process costs, collectd's `processes` plugin tells."""

from __future__ import annotations

from functools import cache

from cgotel.model import Entity, Point, Reading, Series, Sweep, count_points
from cgotel.self_metrics import COLLECTOR_ERRORS, SERIES_DROPPED, SWEEP_DURATION, SWEEP_POINTS
from cgotel.sweeper import Sweeper

_ENTITY = Entity("agent", "collectd")
_NANOSECONDS = 1_000_000_000


class OwnValues:
    """Makes a reading of the sweeper that has just swept."""

    def __init__(self) -> None:
        self._duration = SWEEP_DURATION.series("cgotel.sweep.duration", _NANOSECONDS)
        self._points = SWEEP_POINTS.series("cgotel.sweep.points")
        self._dropped = SERIES_DROPPED.series("cgotel.series.dropped")

    def reading(self, sweeper: Sweeper, sweep: Sweep) -> Reading:
        """How long it took, how much it gave, what it left out, what failed."""
        points: list[Point] = [
            (self._duration, sweeper.duration_ns),
            (self._points, count_points(sweep.readings)),
            (self._dropped, sweeper.budget.dropped),
        ]
        points += [(_errors(r.collector.name), r.faults.count) for r in sweeper.running]
        return Reading.of(_ENTITY, sweep.time_ns, points)


@cache
def _errors(collector: str) -> Series:
    attributes = {"cgotel.collector.name": collector}
    return COLLECTOR_ERRORS.series("cgotel.collector.errors", attributes=attributes)
