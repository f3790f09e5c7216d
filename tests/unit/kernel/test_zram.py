"""zram's columns: told apart by place, as many as the kernel prints."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cgotel.kernel import zram

MM_STAT = b" 5074944  2382963  3129344        0  3129344      512        0      273      273\n"


def test_columns_have_names() -> None:
    assert zram.columns(MM_STAT, zram.MM_STAT) == {
        "orig_data_size": 5074944,
        "compr_data_size": 2382963,
        "mem_used_total": 3129344,
        "mem_limit": 0,
        "mem_used_max": 3129344,
        "same_pages": 512,
        "pages_compacted": 0,
        "huge_pages": 273,
        "huge_pages_since": 273,
    }


def test_an_older_kernel_prints_fewer() -> None:
    seven = b" ".join(MM_STAT.split()[:7]) + b"\n"
    assert list(zram.columns(seven, zram.MM_STAT)) == list(zram.MM_STAT[:7])


def test_a_newer_kernel_may_print_more() -> None:
    assert zram.columns(b"1 2 3 4 5\n", zram.IO_STAT) == dict(zip(zram.IO_STAT, (1, 2, 3, 4), strict=True))


@pytest.mark.parametrize("data", [b"", b"\n", MM_STAT[:-1], b"a b c\n", b"-1 -2\n"])
def test_what_is_cut_or_no_number_is_left_out(data: bytes) -> None:
    assert zram.columns(data, zram.MM_STAT) == {}


def test_an_unreadable_column_does_not_shift_the_others() -> None:
    assert zram.columns(b"1 -2 3\n", zram.IO_STAT) == {"failed_reads": 1, "invalid_io": 3}


@settings(deadline=None)
@given(st.binary(max_size=120) | st.text("0123456789 -\n", max_size=120).map(str.encode))
def test_no_bytes_are_too_much(data: bytes) -> None:
    assert all(0 <= value < 2**63 for value in zram.columns(data, zram.MM_STAT).values())


def test_devices_are_found_by_name(tmp_path: Path) -> None:
    for name in ("zram10", "zram2", "zram", "zramx", "sda", "loop0"):
        (tmp_path / "block" / name).mkdir(parents=True)
    assert zram.devices(str(tmp_path)) == ["zram10", "zram2"]
    assert zram.devices(str(tmp_path / "elsewhere")) == []
