"""How far free memory is in pieces: /proc/buddyinfo (mm/page_alloc.c).

Node 0, zone   Normal      2      2   1278    265    101     60     32     19     14      6    709
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from cgotel.collectors.host.numa import NODE
from cgotel.collectors.instruments import Instruments, linux
from cgotel.collectors.tables import FileTable, computed
from cgotel.kernel import procfs
from cgotel.model import AttributeValue, Instrument, Point, Series

_ZONE = linux("memory", "zone")
_ORDER = linux("memory", "order")


def table(make: Instruments, order: int, free_blocks: bool) -> FileTable:
    """The unusable free space index for one order and, where asked for, every count of blocks."""
    unusable = make.gauge(
        linux("memory", "fragmentation"),
        "1",
        "Share of free memory in blocks too small for this order",
        "double",
    )
    count = make.updown(linux("memory", "free_block.count"), "{block}", "Free blocks of 2**order pages")

    @lru_cache(maxsize=4096)
    def series(instrument: Instrument, node: int, zone: str, order: int) -> Series:
        attributes: dict[str, AttributeValue] = {NODE: node, _ZONE: zone.lower(), _ORDER: order}
        key = "unusable" if instrument is unusable else "free"
        return instrument.series(f"buddyinfo.node{node}.{zone}.order{order}_{key}", attributes=attributes)

    def points(data: bytes) -> Iterator[Point]:
        for (node, zone), blocks in procfs.buddyinfo(data).items():
            if order < len(blocks.counts):
                yield series(unusable, node, zone, order), blocks.unusable(order)
            for size, number in enumerate(blocks.counts) if free_blocks else ():
                yield series(count, node, zone, size), number

    return computed("buddyinfo", points, many=True)
