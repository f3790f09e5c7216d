"""The four pressure files of a cgroup: totals in seconds, averages as shares, some and full."""

import pytest
from tests.unit.collectors.cgroup.tables_shown import CGROUP, expected, keys, shown, sources

from cgotel.collectors.cgroup import pressure

FILES = ["cpu.pressure", "memory.pressure", "io.pressure", "irq.pressure"]


def test_every_total_and_every_average_is_a_row() -> None:
    assert shown(pressure.tables(CGROUP, averages=True)) == expected("pressure")
    assert sources(pressure.tables(CGROUP, averages=True)) == keys(FILES)


def test_averages_are_no_rows_where_they_are_not_asked_for() -> None:
    totals = [row for row in expected("pressure").splitlines(keepends=True) if ".total" in row]
    assert shown(pressure.tables(CGROUP, averages=False)) == "".join(totals)


def test_full_of_the_machines_cpu_which_the_kernel_does_not_measure_is_no_row() -> None:
    machine = pressure.tables(CGROUP, averages=True, machine=True)
    assert keys(FILES) - sources(machine) == {
        f"cpu.pressure.full.{key}" for key in ("avg10", "avg60", "avg300", "total")
    }


@pytest.mark.parametrize(
    "content",
    [
        "",
        "some avg10=0.00 avg60=0.00 avg300=0.00 total=19",
        "some total 5\n",
        "some total=1.5\n",
        "most total=5\n",
        "5\n",
    ],
)
def test_what_is_cut_or_off_is_no_row_and_not_zero(content: str) -> None:
    assert shown(pressure.tables(CGROUP, averages=False), dict.fromkeys(FILES, content)) == ""
