"""cgroup.*, pids.*, hugetlb.*, rdma.*, misc.* and dmem.*: every key that Linux 6.12 to 6.18 print."""

import pytest
from tests.unit.collectors.cgroup.tables_shown import CGROUP, expected, shown

from cgotel.collectors.cgroup import others

TABLES = others.tables(CGROUP, [("2MB", 2097152)])

ROWS = expected("others")


def test_every_row() -> None:
    assert shown(TABLES) == ROWS


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("pids.max", "max\n"),
        ("hugetlb.2MB.max", "max\n"),
        ("rdma.max", "mlx4_0 hca_handle=max hca_object=max \n"),
        ("rdma.current", ""),
        ("misc.max", "res_a max\n"),
        ("misc.events", "res_a 3\n"),
        ("dmem.max", "drm/0000:03:00.0/vram0 max\n"),
        ("dmem.current", "drm/0000:03:00.0/vram0\n"),
        ("cgroup.stat.local", ""),
        ("pids.events", "other 3\n"),
    ],
)
def test_max_and_what_is_not_there_is_no_row_and_not_zero(file: str, content: str) -> None:
    assert shown(TABLES, {file: content}) == ""


def test_huge_pages_are_asked_for_in_the_sizes_that_the_machine_has() -> None:
    files = {table.file for table in others.tables(CGROUP, [("64KB", 65536), ("1GB", 1 << 30)])}
    assert {file for file in files if file.startswith("hugetlb")} == {
        f"hugetlb.{size}.{suffix}"
        for size in ("64KB", "1GB")
        for suffix in ("current", "max", "rsvd.current", "events")
    }


def test_a_resource_may_be_called_anything() -> None:
    [misc] = [table for table in TABLES if table.file == "misc.current"]
    columns = misc.parse(b"caf\xe9=x 3\n")
    assert [series.source for series in columns.wanted] == ["misc.current.caf\\xe9=x"]
