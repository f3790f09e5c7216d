"""What the machine is made of, from trees of files and from this very machine."""

import os
import time

import pytest

from cgotel.kernel import topology
from cgotel.testing import tree


@pytest.mark.parametrize(
    ("link", "name"),
    [
        ("../../devices/pci0000:00/0000:00:17.0/ata1/host0/target0:0:0/0:0:0:0/block/sdb", "sdb"),
        ("../../devices/virtual/block/dm-0", "dm-0"),
        ("../../devices/pci0000:00/nvme/nvme0/nvme0n1/nvme0n1p1", "nvme0n1p1"),
        ("../../devices/pci/block/cciss!c0d0", "cciss/c0d0"),
    ],
)
def test_a_block_device_is_called_as_sysfs_calls_it(tmp_path, link: str, name: str) -> None:
    (tmp_path / "dev/block").mkdir(parents=True)
    (tmp_path / "dev/block/8:16").symlink_to(link)
    assert topology.block_device_name(str(tmp_path), "8:16") == name


@pytest.mark.parametrize(
    "device", ["8:0", "", ":", "8:", "../../x", "8:16/..", "default", "²:³", "8:16\0", "9" * 5000]
)
def test_a_block_device_that_sysfs_does_not_know_keeps_its_number(tmp_path, device: str) -> None:
    assert topology.block_device_name(str(tmp_path), device) == device


def test_huge_page_sizes_are_labelled_as_the_hugetlb_controller_does(tmp_path) -> None:
    names = ["1048576kB", "2048kB", "64kB", "16777216kB", "²kB", "kB", "2048", "-1kB"]
    tree({"kernel": {"mm": {"hugepages": {f"hugepages-{name}": {} for name in names}}}}, into=tmp_path)
    assert topology.huge_page_sizes(str(tmp_path)) == [
        ("64KB", 65536), ("2MB", 2097152), ("1GB", 1073741824), ("16GB", 17179869184)
    ]  # fmt: skip


def test_a_machine_without_sysfs_and_procfs_is_unknown_and_not_zero(tmp_path) -> None:
    nothing = str(tmp_path / "nothing")
    assert topology.huge_page_sizes(nothing) == []
    assert topology.online_cpus(nothing) is None
    assert topology.memory(nothing) == {}
    assert topology.boot_time_ns(nothing) is None


@pytest.mark.parametrize(
    "stat",
    [
        "",
        "btime",
        "btime \n",
        "btime x\n",
        "btime -1\n",
        "xbtime 1\n",
        "cpu 1\n",
        "btime 1.5\n",
        "btime \xb2\n",
    ],
)
def test_a_boot_time_that_does_not_stand_there_is_none(tmp_path, stat: str) -> None:
    tree({"stat": stat}, into=tmp_path)
    assert topology.boot_time_ns(str(tmp_path)) is None


def test_a_boot_time_is_in_nanoseconds(tmp_path) -> None:
    tree({"stat": "cpu  1 2 3\nintr 5\nbtime 1764561600\nprocesses 9\n"}, into=tmp_path)
    assert topology.boot_time_ns(str(tmp_path)) == 1764561600_000_000_000


def test_this_machine_is_what_others_say_of_it() -> None:
    online = topology.online_cpus("/sys")
    assert online is not None
    assert online >= len(os.sched_getaffinity(0))
    assert topology.memory("/proc")["MemTotal"] == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    booted = topology.boot_time_ns("/proc")
    assert booted is not None
    assert abs(time.time_ns() - time.clock_gettime_ns(time.CLOCK_BOOTTIME) - booted) < 2_000_000_000
