"""Stamps of the log on the agent's timeline: drift, sleep, and how far off either leaves us."""

from cgotel.clock import Clocks, Timeline
from cgotel.watchers.kernel_log.stamps import Stamps

SECOND = 10**9
WALL = 1_796_000_000 * SECOND


class Machine:
    """Its clocks, set by hand; the log's own goes ``drift_ns`` behind CLOCK_MONOTONIC."""

    def __init__(self, up_ns: int = 1000 * SECOND, asleep_ns: int = 0, drift_ns: int = 0) -> None:
        self.up_ns, self.asleep_ns, self.drift_ns, self.stepped_ns = up_ns, asleep_ns, drift_ns, 0
        self.stamps = Stamps(Timeline(self.read), self.read)

    def read(self) -> Clocks:
        boottime = self.up_ns + self.asleep_ns
        return Clocks(WALL + boottime + self.stepped_ns, self.up_ns, boottime)

    def print(self) -> int:
        """A line is printed now: its stamp."""
        return (self.up_ns - self.drift_ns) // 1000

    def arrive(self, latency_ns: int) -> None:
        stamp = self.print()
        self.up_ns += latency_ns
        self.stamps.arrived(stamp)


def test_a_clock_that_agrees_needs_no_calibration() -> None:
    machine = Machine()
    time_ns, uncertainty_ns = machine.stamps.at(10_000_000)
    assert time_ns == WALL + 10 * SECOND
    assert 0 < uncertainty_ns < SECOND


def test_the_smallest_delay_tells_how_far_the_clocks_are_apart() -> None:
    machine = Machine(up_ns=10**6 * SECOND, drift_ns=40 * SECOND)
    for latency_ms in (30, 2, 900, 5):
        machine.up_ns += SECOND
        machine.arrive(latency_ms * 10**6)
    true_ns, stamp = machine.read().boottime + WALL, machine.print()
    time_ns, uncertainty_ns = machine.stamps.at(stamp)
    assert abs(time_ns - true_ns) <= 2 * 10**6
    assert uncertainty_ns <= 20 * 10**6


def test_what_was_printed_before_the_agent_came_may_be_off_by_what_clocks_drift_in_that_time() -> None:
    machine = Machine(up_ns=10**6 * SECOND, drift_ns=40 * SECOND)
    for _ in range(4):
        machine.arrive(10**6)
    early_ns, uncertainty_ns = machine.stamps.at(100 * 10**6)
    assert abs(early_ns - (WALL + 100 * SECOND)) <= uncertainty_ns
    assert 40 * SECOND <= uncertainty_ns <= 200 * SECOND


def test_no_line_comes_from_the_future() -> None:
    machine = Machine(drift_ns=-3 * SECOND)
    stamp = machine.print()
    machine.stamps.seen(stamp)
    assert machine.stamps.at(stamp)[0] <= WALL + machine.up_ns
    assert machine.stamps.at(stamp + 10**9)[0] <= WALL + machine.up_ns


def test_sleep_counts_as_time_for_what_came_after_it() -> None:
    machine = Machine(up_ns=1000 * SECOND, asleep_ns=500 * SECOND)
    machine.stamps.woke(600 * 10**6)
    assert machine.stamps.at(700 * 10**6)[0] == WALL + 1200 * SECOND
    before_ns, uncertainty_ns = machine.stamps.at(100 * 10**6)
    assert before_ns - uncertainty_ns <= WALL + 100 * SECOND
    assert before_ns + uncertainty_ns >= WALL + 600 * SECOND


def test_what_is_read_only_after_waking_is_of_the_time_before() -> None:
    machine = Machine()
    stamp = machine.print()
    machine.asleep_ns = 3600 * SECOND
    assert machine.stamps.at(stamp)[0] == WALL + 1000 * SECOND
    machine.stamps.woke(stamp + 1000)
    machine.up_ns += SECOND
    assert machine.stamps.at(machine.print())[0] == WALL + 4601 * SECOND


def test_a_step_of_the_wall_clock_changes_nothing() -> None:
    machine = Machine()
    machine.arrive(10**6)
    before = machine.stamps.at(900 * 10**6)
    machine.stepped_ns = -3600 * SECOND
    assert machine.stamps.at(900 * 10**6) == before


def test_an_offset_of_an_earlier_life_is_taken_up() -> None:
    machine = Machine(up_ns=10**6 * SECOND, drift_ns=40 * SECOND)
    stamp = machine.print()
    machine.stamps.resume(40 * SECOND, stamp)
    time_ns, uncertainty_ns = machine.stamps.at(stamp)
    assert abs(time_ns - (WALL + machine.up_ns)) <= uncertainty_ns < SECOND
