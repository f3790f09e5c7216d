"""One timeline: the wall clock for what is reported, the monotonic clock for what is measured."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple


class Instant(NamedTuple):
    """The same moment on both clocks, in nanoseconds: Unix time, and CLOCK_MONOTONIC."""

    time_ns: int
    monotonic_ns: int


def now() -> Instant:
    """This moment."""
    return Instant(time.time_ns(), time.monotonic_ns())


class Clocks(NamedTuple):
    """The kernel's clocks at one moment, in nanoseconds. CLOCK_MONOTONIC stands still in suspend."""

    wall: int
    monotonic: int
    boottime: int


def clocks() -> Clocks:
    """The kernel's clocks, now."""
    return Clocks(time.time_ns(), time.monotonic_ns(), time.clock_gettime_ns(time.CLOCK_BOOTTIME))


class Timeline:
    """Unix time that neither jumps nor stops, on which facts from different clocks can be compared.

    It is what the wall clock showed when it was made, carried on by CLOCK_BOOTTIME. A wall clock
    that is set an hour back in the middle of an incident changes no distance between two facts;
    a suspended machine counts as time that passed. `to_wall` leads back to what people's clocks say.
    """

    def __init__(self, read: Callable[[], Clocks] = clocks) -> None:
        self._read = read
        began = read()
        self._anchor = began.wall - began.boottime

    def now(self) -> int:
        """This moment."""
        return self._read().boottime + self._anchor

    def from_boottime(self, stamp_ns: int) -> int:
        """A stamp of CLOCK_BOOTTIME (``trace_clock`` boot)."""
        return stamp_ns + self._anchor

    def from_monotonic(self, stamp_ns: int) -> int:
        """A stamp of CLOCK_MONOTONIC; one from before the last suspend comes out too late by it."""
        read = self._read()
        return stamp_ns + read.boottime - read.monotonic + self._anchor

    def from_wall(self, stamp_ns: int) -> int:
        """A stamp that somebody took from the wall clock since it was set last."""
        return stamp_ns - self._drift()

    def to_wall(self, time_ns: int) -> int:
        """What the wall clock, as it goes now, would have shown at a time of this timeline."""
        return time_ns + self._drift()

    def _drift(self) -> int:
        read = self._read()
        return read.wall - read.boottime - self._anchor
