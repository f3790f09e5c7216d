"""cpu.* and cpuset.*: every key that Linux 6.12 prints, and what it is called."""

import pytest
from tests.unit.collectors.cgroup.tables_shown import CGROUP, expected, keys, shown, sources

from cgotel.collectors.cgroup import cpu

TABLES = cpu.tables(CGROUP)

ROWS = expected("cpu")


def test_every_row() -> None:
    assert shown(TABLES) == ROWS


def test_no_key_is_left_out_but_the_sum_of_user_and_system() -> None:
    assert keys(["cpu.stat"]) - sources(TABLES) == {"cpu.stat.usage_usec"}


@pytest.mark.parametrize(
    ("file", "content", "rows"),
    [
        ("cpu.max", "max 100000\n", "cpu.max.1 = cgroup.cpu.period 0.1 s gauge\n"),
        ("cpu.max", "max\n", ""),
        ("cpu.max", "", ""),
        ("cpu.stat.local", "", ""),  # with the controller off (Linux 6.18)
        (
            "cpuset.cpus.effective",
            "\n",
            "cpuset.cpus.effective_count = cgroup.cpuset.cpu.count 0 {cpu} updowncounter\n",
        ),
        ("cpuset.cpus.effective", "", ""),
    ],
)
def test_what_is_not_there_is_no_row_and_not_zero(file: str, content: str, rows: str) -> None:
    assert shown(TABLES, {file: content}) == rows


def test_without_the_controller_there_is_time_and_no_throttling() -> None:
    core = "usage_usec 3\nuser_usec 1000000\nsystem_usec 2000000\n"
    assert shown(TABLES, {"cpu.stat": core}) == (
        "cpu.stat.user_usec = cgroup.cpu.time{cpu.mode=user} 1.0 s counter\n"
        "cpu.stat.system_usec = cgroup.cpu.time{cpu.mode=system} 2.0 s counter\n"
    )


def test_a_counter_of_32_bits_that_wrapped_below_zero_is_no_row() -> None:
    assert shown(TABLES, {"cpu.stat": "nr_periods -2147483648\nnr_throttled 1\n"}) == (
        "cpu.stat.nr_throttled = cgroup.cpu.throttled.periods 1 {period} counter\n"
    )
