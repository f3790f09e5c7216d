"""From the stamps of the kernel's log to the agent's timeline.

A record bears the local clock of the CPU that printed it (kernel/printk/printk.c, local_clock()). That
clock goes beside CLOCK_MONOTONIC: it stands still in suspend as well, starts at nearly the same
moment, and is not disciplined by NTP, so that over weeks they drift apart by seconds to minutes. How
far they are apart now is seen whenever a record arrives that was waited for: the smallest distance
between stamp and arrival is the offset.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from cgotel.clock import Clocks, Timeline, clocks

_SAMPLES = 64
_ENOUGH = 4
_CALIBRATED_NS = 20 * 10**6
_FEW_SAMPLES_NS = 200 * 10**6  # one arrival may have been late by what a busy machine makes us wait
_READ_APART_NS = 10**7  # between reading one clock and the next we may have been made to wait
_DRIFT = 10_000  # one part in so many: 100 ppm, what crystals are specified to


class Stamps:
    """Reads stamps (microseconds) as times, and says how far off they may be."""

    def __init__(self, timeline: Timeline, read: Callable[[], Clocks] = clocks) -> None:
        self._timeline = timeline
        self._read = read
        self._samples: deque[int] = deque(maxlen=_SAMPLES)
        self._prior_ns = 0
        self._prior_at_ns = 0
        self._began_ns = read().monotonic
        self._asleep_ns = 0
        self._wake_us = 0

    @property
    def offset_ns(self) -> int:
        """CLOCK_MONOTONIC less the log's clock."""
        return min(self._samples, default=self._prior_ns)

    @property
    def asleep_ns(self) -> int:
        """How long this machine has been suspended since it booted, so far."""
        apart_ns = min(now.boottime - now.monotonic for now in (self._read() for _ in range(3)))
        return apart_ns if apart_ns > _READ_APART_NS else 0

    def resume(self, offset_ns: int, stamp_us: int) -> None:
        """Begin with an offset that was seen about the time of a stamp, in an earlier life of the agent."""
        self._prior_ns, self._prior_at_ns = offset_ns, stamp_us * 1000

    def arrived(self, stamp_us: int) -> None:
        """Learn from a record that was waited for and has come this moment."""
        self._samples.append(self._read().monotonic - stamp_us * 1000)

    def seen(self, stamp_us: int) -> None:
        """Learn from any other record that no stamp lies in the future."""
        distance = self._read().monotonic - stamp_us * 1000
        if not self._samples and distance < self._prior_ns:
            self._prior_ns, self._prior_at_ns = distance, stamp_us * 1000

    def woke(self, stamp_us: int) -> None:
        """From this stamp on the machine has been awake without a break, so far as the log tells."""
        self._asleep_ns = self.asleep_ns
        self._wake_us = stamp_us

    def at(self, stamp_us: int) -> tuple[int, int]:
        """The time of a stamp, and how far it may be off either way, both in nanoseconds."""
        stamp_ns = stamp_us * 1000
        asleep_ns, doubt_ns = self._slept(stamp_us)
        time_ns = self._timeline.from_boottime(stamp_ns + self.offset_ns + asleep_ns)
        return min(time_ns, self._timeline.now()), self._drifted(stamp_ns) + doubt_ns

    def _drifted(self, stamp_ns: int) -> int:
        base_ns = _CALIBRATED_NS if len(self._samples) >= _ENOUGH else _FEW_SAMPLES_NS
        if self._samples:
            return base_ns + max(0, self._began_ns - stamp_ns - self.offset_ns) // _DRIFT
        return base_ns + abs(stamp_ns - self._prior_at_ns) // _DRIFT

    def _slept(self, stamp_us: int) -> tuple[int, int]:
        """What suspension adds to a stamp: known since the last wake, in between before it."""
        if stamp_us >= self._wake_us:
            return self._asleep_ns, 0
        return self._asleep_ns // 2, self._asleep_ns - self._asleep_ns // 2
