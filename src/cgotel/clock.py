"""One timeline: the wall clock for what is reported, the monotonic clock for what is measured."""

from __future__ import annotations

import time
from typing import NamedTuple


class Instant(NamedTuple):
    """The same moment on both clocks, in nanoseconds: Unix time, and CLOCK_MONOTONIC."""

    time_ns: int
    monotonic_ns: int


def now() -> Instant:
    """This moment."""
    return Instant(time.time_ns(), time.monotonic_ns())
