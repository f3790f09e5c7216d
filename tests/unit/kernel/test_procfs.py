"""The host's files of /proc: what stands there whole comes out, in bytes, and nothing else does."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cgotel.kernel import procfs

MEMINFO = b"""\
MemTotal:       24684084 kB
MemAvailable:   23790728 kB
Active(anon):       1596 kB
VmallocTotal:   34359738367 kB
HugePages_Total:      16
Hugepagesize:       2048 kB
"""

SWAPS = b"""\
Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority
/dev/zram1                              partition\t65532\t\t128\t\t5
/srv/my\\040swap\\134file                  file\t\t1048572\t\t0\t\t-2
/swapfile\\040(deleted)                  file\t\t4092\t\t8\t\t-3
"""

BUDDYINFO = (
    b"Node 0, zone      DMA      0      0      0      0      0      0      0      0      1      1      3 \n"
    b"Node 0, zone   Normal   5559  13099   8996  10106   7925   3837   1330    468    203     16    338 \n"
    b"Node 1, zone   Normal      0      0      0      0      0      0      0      0      0      0      0 \n"
)

LOADAVG = b"3.14 1.04 0.48 8/133 19202\n"

STAT = b"""\
cpu  30848 5358 16712 360610 2002 0 766 94 0 0
cpu0 15424 2679 8356 180305 1001 0 383 47 0 0
intr 1333478 0 0 26 417
ctxt 3145145
btime 1796097889
processes 51670
procs_running 9
procs_blocked 0
softirq 774408 0 53331 10 40533
"""

Parser = Callable[[bytes], Any]

BY_FILE: dict[bytes, Parser] = {MEMINFO: procfs.meminfo, SWAPS: procfs.swaps, BUDDYINFO: procfs.buddyinfo}


def test_memory_comes_in_bytes_and_huge_pages_as_a_count() -> None:
    assert procfs.meminfo(MEMINFO) == {
        "MemTotal": 24684084 * 1024,
        "MemAvailable": 23790728 * 1024,
        "Active(anon)": 1596 * 1024,
        "VmallocTotal": 34359738367 * 1024,
        "HugePages_Total": 16,
        "Hugepagesize": 2048 * 1024,
    }


def test_a_node_says_its_number_before_each_key() -> None:
    data = b"\nNode 12 MemTotal:        9529548 kB\nNode 12 HugePages_Total:     3\n"
    assert procfs.meminfo(data) == {"MemTotal": 9529548 * 1024, "HugePages_Total": 3}


@pytest.mark.parametrize(
    "line",
    [
        b"MemTotal:       24684084 kB",
        b"MemTotal:       24684084 k",
        b"MemTotal:       24684084 MB\n",
        b"MemTotal:       -1 kB\n",
        b"MemTotal:       1.5 kB\n",
        b"MemTotal:       9999999999999999 kB\n",
        b"MemTotal 24684084 kB\n",
        b"MemTotal:\n",
        b": 5 kB\n",
    ],
)
def test_an_amount_that_is_cut_or_not_one_is_left_out(line: bytes) -> None:
    assert procfs.meminfo(line) == {}


def test_swap_is_told_by_path() -> None:
    assert procfs.swaps(SWAPS) == {
        "/dev/zram1": procfs.Swap(65532 * 1024, 128 * 1024),
        "/srv/my swap\\file": procfs.Swap(1048572 * 1024, 0),
        "/swapfile (deleted)": procfs.Swap(4092 * 1024, 8 * 1024),
    }


def test_no_swap_is_a_header_alone() -> None:
    assert procfs.swaps(SWAPS[: SWAPS.index(b"\n") + 1]) == {}


def test_load_and_threads() -> None:
    assert procfs.load(LOADAVG) == procfs.Load((3.14, 1.04, 0.48), 133)


@pytest.mark.parametrize(
    "data", [b"", b"\n", LOADAVG[:-1], b"3.14 1.04 0.48\n", b"a b c 8/133 1\n", LOADAVG * 2]
)
def test_a_load_that_is_not_whole_is_none(data: bytes) -> None:
    assert procfs.load(data) is None


def test_interrupts_are_skipped() -> None:
    assert procfs.without_interrupts(STAT) == (
        b"ctxt 3145145\nbtime 1796097889\nprocesses 51670\nprocs_running 9\nprocs_blocked 0\n"
    )


def test_what_has_no_interrupts_stays_as_it_is() -> None:
    assert procfs.without_interrupts(b"processes 51670\n") == b"processes 51670\n"


def test_a_cut_in_the_last_digit_stays_visible() -> None:
    assert procfs.without_interrupts(STAT[: STAT.index(b"processes 5") + 11]).endswith(b"\nprocesses 5")


def test_fragmentation_is_what_the_kernel_computes() -> None:
    """From one machine at one instant: /proc/buddyinfo beside debugfs' extfrag/unusable_index.

    The kernel cuts to three digits what is rounded here; Normal had moved on by some pages.
    """
    zones = procfs.buddyinfo(BUDDYINFO)
    dma, normal = zones[0, "DMA"], zones[0, "Normal"]
    assert [dma.unusable(order) for order in (8, 9, 10)] == pytest.approx([0, 0.066, 0.200], abs=1e-3)
    kernel = [0.000, 0.005, 0.033, 0.071, 0.156, 0.290, 0.419, 0.509, 0.572, 0.626, 0.635]
    assert [normal.unusable(order) for order in range(11)] == pytest.approx(kernel, abs=2e-3)


def test_where_nothing_is_free_everything_is_unusable() -> None:
    assert procfs.buddyinfo(BUDDYINFO)[1, "Normal"].unusable(0) == 1


@settings(deadline=None)
@given(st.lists(st.integers(0, 10**15 - 1), min_size=1, max_size=20))
def test_the_unusable_share_grows_with_the_order(counts: list[int]) -> None:
    blocks = procfs.FreeBlocks(tuple(counts))
    shares = [blocks.unusable(order) for order in range(len(counts))]
    assert shares == sorted(shares)
    assert shares[0] == (0 if any(counts) else 1)
    assert 0 <= shares[-1] <= 1


@pytest.mark.parametrize("data", BY_FILE)
@settings(deadline=None)
@given(cut=st.integers(0, 400))
def test_a_cut_file_says_less_and_never_something_else(data: bytes, cut: int) -> None:
    parse = BY_FILE[data]
    assert parse(data[:cut]).items() <= parse(data).items()


@settings(deadline=None)
@given(
    st.binary(max_size=200)
    | st.text("MemTotal:Node 0,zone 123456789kB./\n\t\\", max_size=120).map(str.encode)
    | st.sampled_from([*BY_FILE, LOADAVG, STAT]).flatmap(
        lambda data: st.tuples(st.integers(0, len(data)), st.binary(max_size=8)).map(
            lambda place: data[: place[0]] + place[1] + data[place[0] :]
        )
    )
)
def test_no_bytes_are_too_much(data: bytes) -> None:
    for amount in procfs.meminfo(data).values():
        assert 0 <= amount < 2**63
    for swap in procfs.swaps(data).values():
        assert 0 <= swap.size < 2**63
        assert 0 <= swap.used < 2**63
    for blocks in procfs.buddyinfo(data).values():
        assert 0 <= blocks.unusable(9) <= 1
    procfs.load(data)
    procfs.without_interrupts(data)


def test_this_machine_is_read() -> None:
    read = lambda name: Path("/proc", name).read_bytes()  # noqa: E731
    assert procfs.meminfo(read("meminfo"))["MemTotal"] == psutil.virtual_memory().total
    load = procfs.load(read("loadavg"))
    assert load is not None
    assert load.threads > 1
    assert len(procfs.swaps(read("swaps"))) == len(read("swaps").splitlines()) - 1
    assert len(procfs.buddyinfo(read("buddyinfo"))) == len(read("buddyinfo").splitlines())
    assert procfs.without_interrupts(read("stat")).count(b"\n") == 5
