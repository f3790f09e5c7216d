"""One zone's counter, made to rise for ever: the kernel's begins anew at the end of its range."""

from __future__ import annotations

_MICRO = 1_000_000
_SECOND_NS = 10**9
_SHORTEST_NS = _SECOND_NS // 100  # the counters themselves move once in a millisecond
_MOST_ASLEEP_NS = _SECOND_NS


class Meter:
    """Counts from its first look on.

    A step backwards is the end of the range when what was then used can have been: at most
    ``most_watts`` on average. Any other is a counter that somebody, or a sleep, has set back: what was
    used meanwhile is unknown, and the count begins anew. Two ends of the range between two looks
    cannot be told from one.
    """

    __slots__ = ("_at_ns", "_last_uj", "_most_watts", "_wall_ns", "began_ns", "total_uj", "watts")

    def __init__(self, most_watts: int) -> None:
        self.began_ns: int | None = None
        """Unix time at which ``total_uj`` was 0; None before the first look."""
        self.total_uj = 0
        self.watts: float | None = None
        """The mean since the look before; None where there was none, where the host slept in between,
        and where the counter stood still: what uses no power at all is not measured."""
        self._most_watts = most_watts
        self._last_uj = 0
        self._at_ns = 0
        self._wall_ns = 0

    def look(self, raw_uj: int, range_uj: int | None, monotonic_ns: int, wall_ns: int) -> bool:
        """Take the counter as it is now; False where the count began with this look."""
        step = self._step(raw_uj, range_uj, monotonic_ns)
        interval_ns = monotonic_ns - self._at_ns
        slept = abs(wall_ns - self._wall_ns - interval_ns) > _MOST_ASLEEP_NS
        self._last_uj, self._at_ns, self._wall_ns = raw_uj, monotonic_ns, wall_ns
        self.watts = None
        if step is None:
            self.began_ns, self.total_uj = wall_ns, 0
            return False
        self.total_uj += step
        if step and interval_ns >= _SHORTEST_NS and not slept:
            self.watts = step / _MICRO / (interval_ns / _SECOND_NS)
        return True

    def _step(self, raw_uj: int, range_uj: int | None, monotonic_ns: int) -> int | None:
        """What was used since the last look, in microjoules; None where that is unknown."""
        if self.began_ns is None:
            return None
        step = raw_uj - self._last_uj
        if step < 0 and range_uj is not None:
            step += range_uj
        seconds = max(monotonic_ns - self._at_ns, _SHORTEST_NS) / _SECOND_NS
        return step if 0 <= step <= self._most_watts * seconds * _MICRO else None
