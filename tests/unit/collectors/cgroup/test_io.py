"""io.*: every key that Linux 6.12 prints, by device."""

import pytest
from tests.unit.collectors.cgroup.tables_shown import CGROUP, expected, shown

from cgotel.collectors.cgroup import io

TABLES = io.tables(CGROUP, lambda device: {"8:16": "sdb"}.get(device, device))

ROWS = expected("io")


def test_every_row() -> None:
    assert shown(TABLES) == ROWS


@pytest.mark.parametrize(
    "content",
    [
        "",
        "252:0 ",  # cut while the cgroup was being made
        "252:0 \n",
        "252:0 rbytes=1459200 wby",
        "8:16 rbytes=max wbytes=-1\n",
        "8:16 cost.usage=1 cost.vrate=100.00 use_delay=0 delay_nsec=0 depth=max avg_lat=1 win=1\n",
        "8:16 rbytes 1\n",
    ],
)
def test_a_device_without_io_is_no_row_and_not_zero(content: str) -> None:
    assert shown(TABLES, {"io.stat": content}) == ""


def test_a_line_that_was_not_ended_takes_nothing_from_those_before() -> None:
    assert shown(TABLES, {"io.stat": "8:0 rbytes=1\n252:0 "}) == (
        "io.stat.8:0.rbytes = cgroup.disk.io{system.device=8:0,disk.io.direction=read} 1 By counter\n"
    )


def test_devices_on_one_line_keep_their_own_numbers() -> None:
    assert shown(TABLES, {"io.stat": "7:0 8:16 rbytes=1\n7:1 8:0 wbytes=2\n"}) == (
        "io.stat.8:16.rbytes = cgroup.disk.io{system.device=sdb,disk.io.direction=read} 1 By counter\n"
        "io.stat.8:0.wbytes = cgroup.disk.io{system.device=8:0,disk.io.direction=write} 2 By counter\n"
    )


@pytest.mark.parametrize(
    "content", ["", "100\n", "8:16 100\n", "default max\n", "default 100", "default\n", "default 1 2\n"]
)
def test_a_weight_that_is_no_default_is_no_row(content: str) -> None:
    assert shown(TABLES, {"io.weight": content}) == ""


def test_the_series_of_a_device_is_the_same_from_file_to_file() -> None:
    [stat] = [table for table in TABLES if table.file == "io.stat"]
    first, second = (
        stat.parse(content) for content in (b"8:16 rbytes=1\n", b"8:0 rbytes=5\n8:16 rbytes=2\n")
    )
    assert second.wanted[1] is first.wanted[0]


def test_more_devices_than_are_remembered_are_rows_all_the_same() -> None:
    [stat] = [table for table in io.tables(CGROUP, str) if table.file == "io.stat"]
    content = b"".join(b"8:%d rbytes=%d\n" % (number, number) for number in range(70_000))
    for _ in range(2):
        assert stat.parse(content).values == list(range(70_000))
