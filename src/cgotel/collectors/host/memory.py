"""The host's memory and swap: /proc/meminfo, /proc/swaps (filesystems/proc.rst).

    MemTotal:       24684084 kB         Filename     Type        Size    Used   Priority
    MemAvailable:   23790728 kB         /dev/zram0   partition   65532   0      5

Swap is told by device: compressed memory and a disk are not the same thing to wait for.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from cgotel.collectors.files import Silence
from cgotel.collectors.instruments import Instruments
from cgotel.collectors.tables import FileTable, computed, named, rows
from cgotel.kernel import procfs
from cgotel.model import Point, Series

SILENCES = {
    "swaps": Silence("no swap device", "mkswap and swapon a partition, a file or a zram device", empty=True),
}

_HUGE_PAGES = "system.memory.linux.hugepages"

# Keys that are a metric each; the others are states of one.
_METRICS = {
    "MemTotal": ("system.memory.limit", "By", "Memory that the kernel can use"),
    "MemAvailable": ("system.memory.linux.available", "By", "What can be given out without swapping"),
    "Shmem": ("system.memory.linux.shared", "By", "Shared memory and tmpfs"),
    "HugePages_Total": (f"{_HUGE_PAGES}.limit", "{page}", "Huge pages of the default size in the pool"),
    "HugePages_Rsvd": (f"{_HUGE_PAGES}.reserved", "{page}", "Free huge pages that are promised already"),
    "HugePages_Surp": (f"{_HUGE_PAGES}.surplus", "{page}", "Huge pages beyond the persistent pool"),
    "Hugepagesize": (f"{_HUGE_PAGES}.page_size", "By", "Size of a huge page of the default size"),
}


def tables(make: Instruments) -> list[FileTable]:
    """What is read of the host's memory and swap."""
    return [_meminfo(make), _swaps(make)]


def _meminfo(make: Instruments) -> FileTable:
    usage = make.updown("system.memory.usage", "By", "Memory by state; used is what is not available")
    slab = make.updown("system.memory.linux.slab.usage", "By", "Kernel slab memory")
    huge_pages = make.updown(f"{_HUGE_PAGES}.usage", "{page}", "Huge pages of the default size by state")
    states = rows("meminfo", usage, "system.memory.state", "MemUsed=used MemFree=free")
    states |= rows("meminfo", usage, "system.memory.state", "Buffers=buffers Cached=cached")
    states |= rows(
        "meminfo",
        slab,
        "system.memory.linux.slab.state",
        "SReclaimable=reclaimable SUnreclaim=unreclaimable",
    )
    states |= rows("meminfo", huge_pages, f"{_HUGE_PAGES}.state", "HugePages_Used=used HugePages_Free=free")
    metrics = {
        key: make.updown(*description).series(f"meminfo.{key}") for key, description in _METRICS.items()
    }
    return named("meminfo", metrics | states, _with_used)


def _with_used(data: bytes) -> dict[str, int]:
    """/proc/meminfo, and what it leaves to its reader: totals without what is left of them."""
    amounts = procfs.meminfo(data)
    for used, total, rest in (
        ("MemUsed", "MemTotal", "MemAvailable"),
        ("HugePages_Used", "HugePages_Total", "HugePages_Free"),
    ):
        if total in amounts and rest in amounts and amounts[rest] <= amounts[total]:
            amounts[used] = amounts[total] - amounts[rest]
    return amounts


def _swaps(make: Instruments) -> FileTable:
    usage = make.updown("system.paging.usage", "By", "Swap by device and state")

    @lru_cache(maxsize=1024)
    def series(path: str, state: str) -> Series:
        attributes = {"system.device": path.removeprefix("/dev/"), "system.paging.state": state}
        return usage.series(f"swaps.{path}.{state}", attributes=attributes)

    def points(data: bytes) -> Iterator[Point]:
        for path, swap in procfs.swaps(data).items():
            yield series(path, "used"), swap.used
            if swap.used <= swap.size:
                yield series(path, "free"), swap.size - swap.used

    return computed("swaps", points, many=True)
