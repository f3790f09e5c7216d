"""The host's files of /proc, from bytes to plain numbers (filesystems/proc.rst, proc(5)).

Every parser is total: whatever the bytes, it returns and raises nothing, and a line without its end
(cut in the middle of a digit, perhaps) is left out.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_KIB = 1024

# Fifteen digits of KiB are bytes within 63 bits.
_AMOUNT = re.compile(rb"^(?:Node +\d+ +)?([^\s:]+): *(\d{1,15})( kB)?\n", re.MULTILINE)
_SWAP = re.compile(
    rb"^(\S+)[ \t]+(?:partition|file)[ \t]+(\d{1,15})[ \t]+(\d{1,15})[ \t]+-?\d+\n", re.MULTILINE
)
_ESCAPE = re.compile(rb"\\([0-3][0-7]{2})")
_LOAD = re.compile(rb"(\d{1,9}\.\d{2}) (\d{1,9}\.\d{2}) (\d{1,9}\.\d{2}) \d+/(\d{1,10}) \d+\n")
_FREE_BLOCKS = re.compile(rb"^Node (\d{1,9}), zone +(\S+)((?: +\d{1,15}){1,64}) *\n", re.MULTILINE)


def meminfo(data: bytes) -> dict[str, int]:
    """/proc/meminfo, or a NUMA node's, in bytes; counts of huge pages stay counts."""
    return {_text(line[1]): int(line[2]) * (_KIB if line[3] else 1) for line in _AMOUNT.finditer(data)}


class Swap(NamedTuple):
    """What a swap device or file can hold, and what of that is in use, in bytes."""

    size: int
    used: int


def swaps(data: bytes) -> dict[str, Swap]:
    """/proc/swaps by path: ``/dev/zram0  partition  65532  0  5``, in KiB; a space in a path is ``\\040``."""
    found = {}
    for line in _SWAP.finditer(data):
        path = _ESCAPE.sub(lambda escape: bytes([int(escape[1], 8)]), line[1])
        found[_text(path)] = Swap(int(line[2]) * _KIB, int(line[3]) * _KIB)
    return found


class Load(NamedTuple):
    """Load averages over 1, 5 and 15 minutes, and how many threads the host has."""

    averages: tuple[float, float, float]
    threads: int


def load(data: bytes) -> Load | None:
    """/proc/loadavg: ``3.14 1.04 0.48 8/133 19202``, of which 8 are running and 19202 is the last pid."""
    fields = _LOAD.fullmatch(data)
    if fields is None:
        return None
    return Load((float(fields[1]), float(fields[2]), float(fields[3])), int(fields[4]))


def without_interrupts(stat: bytes) -> bytes:
    """/proc/stat without its ``intr`` and ``softirq`` lines, which may hold thousands of numbers."""
    start = stat.find(b"\nctxt ")
    end = stat.find(b"\nsoftirq ", start)
    return stat[start + 1 : end + 1 or None] if start >= 0 else stat


class FreeBlocks(NamedTuple):
    """Free blocks of one zone: ``counts[order]`` blocks of 2**order pages."""

    counts: tuple[int, ...]

    def unusable(self, order: int) -> float:
        """The share of free memory that lies in blocks too small for an allocation of this order.

        mm/vmstat.c, unusable_free_index(): 0 is not fragmented, and 1 is no suitable block at all;
        1 also where nothing is free.
        """
        pages = [count << order for order, count in enumerate(self.counts)]
        free = sum(pages)
        return (free - sum(pages[order:])) / free if free else 1.0


def buddyinfo(data: bytes) -> dict[tuple[int, str], FreeBlocks]:
    """/proc/buddyinfo by node and zone: ``Node 0, zone Normal 2 2 1278 ...``, a count for each order."""
    return {
        (int(line[1]), _text(line[2])): FreeBlocks(tuple(map(int, line[3].split())))
        for line in _FREE_BLOCKS.finditer(data)
    }


def _text(name: bytes) -> str:
    return name.decode("utf-8", "backslashreplace")
