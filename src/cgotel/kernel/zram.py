"""Compressed memory devices (admin-guide/blockdev/zram.rst): /sys/block/zram0/mm_stat and others."""

from __future__ import annotations

import os
from collections.abc import Sequence

from cgotel.kernel.formats import whole

MM_STAT = (
    "orig_data_size",
    "compr_data_size",
    "mem_used_total",
    "mem_limit",
    "mem_used_max",
    "same_pages",
    "pages_compacted",
    "huge_pages",
    "huge_pages_since",
)
"""Bytes up to mem_used_max, then pages; huge_pages since Linux 4.18, huge_pages_since 5.11."""

IO_STAT = ("failed_reads", "failed_writes", "invalid_io", "notify_free")

BD_STAT = ("bd_count", "bd_reads", "bd_writes")
"""What is or was written back to the backing device, in units of `BD_UNIT` bytes."""

BD_UNIT = 4096


def devices(sys: str) -> list[str]:
    """Names of the zram devices, ready or not (``zram0``)."""
    try:
        names = os.listdir(f"{sys}/block")
    except OSError:
        return []
    return sorted(name for name in names if name.startswith("zram") and name[4:].isdigit())


def columns(data: bytes, names: Sequence[str]) -> dict[str, int]:
    """A line of numbers that are told apart by their place alone.

    An older kernel prints fewer and has no value for the rest; a newer one may print more.
    """
    if not data.endswith(b"\n"):
        return {}
    numbers = zip(names, map(whole, data.split()), strict=False)
    return {name: value for name, value in numbers if value is not None}
