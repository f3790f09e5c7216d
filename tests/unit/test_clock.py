"""One timeline: it neither jumps when the wall clock is set nor stops while the machine sleeps."""

from __future__ import annotations

from cgotel.clock import Clocks, Timeline

SECOND = 1_000_000_000
HOUR = 3600 * SECOND


class Fake:
    def __init__(self) -> None:
        self.wall, self.monotonic, self.boottime = 1_790_000_000 * SECOND, 500 * SECOND, 600 * SECOND

    def __call__(self) -> Clocks:
        return Clocks(self.wall, self.monotonic, self.boottime)

    def go(self, seconds: float, asleep: bool = False) -> None:
        step = int(seconds * SECOND)
        self.wall += step
        self.boottime += step
        self.monotonic += 0 if asleep else step


def test_stamps_of_all_clocks_meet() -> None:
    clocks = Fake()
    timeline = Timeline(clocks)
    clocks.go(5)
    now = timeline.now()
    assert now == clocks.wall
    assert timeline.from_monotonic(clocks.monotonic) == now
    assert timeline.from_boottime(clocks.boottime) == now
    assert timeline.from_wall(clocks.wall) == now
    assert timeline.to_wall(now) == clocks.wall


def test_a_wall_clock_that_is_set_an_hour_back_moves_nothing() -> None:
    clocks = Fake()
    timeline = Timeline(clocks)
    before = timeline.now()
    clocks.wall -= HOUR
    clocks.go(2)
    assert timeline.now() - before == 2 * SECOND
    assert timeline.from_wall(clocks.wall) == timeline.now()
    assert timeline.to_wall(timeline.now()) == clocks.wall


def test_sleep_is_time_that_passed() -> None:
    clocks = Fake()
    timeline = Timeline(clocks)
    before = timeline.now()
    clocks.go(HOUR / SECOND, asleep=True)
    assert timeline.now() - before == HOUR
    assert timeline.from_monotonic(clocks.monotonic) == timeline.now()
