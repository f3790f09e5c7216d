"""A zram device's memory and faults (admin-guide/blockdev/zram.rst).

    mm_stat   5074944  2382963  3129344        0  3129344      512        0      273      273
    io_stat         0        0        0        0
    bd_stat        12      345       67

A device without a size prints zeros that mean nothing: it is read only once it is set up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from cgotel.collectors.files import AT_FDCWD, Files, Silence, unreadable
from cgotel.collectors.host.repeated import Metric, Repeated
from cgotel.collectors.instruments import Instruments, Kind, linux
from cgotel.collectors.tables import FileTable, named
from cgotel.contract import SourceStatus, State
from cgotel.kernel import formats, zram
from cgotel.kernel.files import Descriptors, KernelFile
from cgotel.kernel.formats import Columns
from cgotel.model import NO_ATTRIBUTES, AttributeValue, Series

NO_DEVICES = Silence("no zram device", "modprobe zram, where compressed memory may serve as swap")

_SILENCES = {"bd_stat": Silence("no writeback to a disk", "a kernel with CONFIG_ZRAM_WRITEBACK")}

_MOST_UNITS = formats.INT64_MAX // zram.BD_UNIT

_READ = {"disk.io.direction": "read"}
_WRITE = {"disk.io.direction": "write"}


class Zram:
    """One device, read while it is set up."""

    def __init__(self, sys: str, name: str, tables: list[FileTable], descriptors: Descriptors) -> None:
        directory = f"{sys}/block/{name}"
        self._name = name
        self._set_up = KernelFile(AT_FDCWD, f"{directory}/initstate", formats.single, None, descriptors)
        self._files = Files(directory, tables, descriptors, _SILENCES, f"{name}/")

    def read(self) -> list[Columns[Series]]:
        """What each file says now; nothing while the device has no size."""
        return self._files.read() if self._set_up.read() else []

    def retry(self) -> None:
        """Ask again for files that were silent."""
        self._set_up.retry()
        self._files.retry()

    def statuses(self) -> Iterator[SourceStatus]:
        """One status for each file, or one for the device that is not set up."""
        if self._set_up.last:
            yield from self._files.statuses()
        elif self._set_up.state is State.OK:
            remedy = f"zramctl --size 4G /dev/{self._name}, then mkswap and swapon"
            yield SourceStatus(self._name, State.OFF, "the device has no size yet", remedy)
        else:
            yield unreadable(self._name, self._set_up.name, self._set_up.state)

    def close(self) -> None:
        """Give the descriptors back."""
        self._set_up.close()
        self._files.close()


class ZramTables:
    """The tables of the devices."""

    def __init__(self, make: Instruments) -> None:
        self._files = (
            Repeated(make, "mm_stat", _memory(), partial(named, parse=_mm_stat)),
            Repeated(make, "io_stat", _faults(), partial(named, parse=_io_stat)),
            Repeated(make, "bd_stat", _writeback(), partial(named, parse=_bd_stat)),
        )

    def of(self, device: str) -> list[FileTable]:
        """What is read of one device."""
        return [file.of(device, {"system.device": device}) for file in self._files]


def _memory() -> dict[str, Metric]:
    return {
        "orig_data_size": _metric("updowncounter", "original", "By", "What it holds, uncompressed"),
        "compr_data_size": _metric("updowncounter", "compressed", "By", "What it holds, compressed"),
        "mem_used_total": _metric("updowncounter", "usage", "By", "Memory that the device takes"),
        "mem_limit": _metric("updowncounter", "limit", "By", "Limit of that memory; absent without one"),
        "mem_used_max": _metric("gauge", "peak", "By", "Largest usage since the device was set up"),
        "same_pages": _metric("updowncounter", "same_page.count", "{page}", "Pages that take no memory"),
        "pages_compacted": _metric("counter", "compacted_pages", "{page}", "Pages that compaction freed"),
        "huge_pages": _metric("updowncounter", "huge_page.count", "{page}", "Pages that do not compress"),
    }


def _faults() -> dict[str, Metric]:
    failed = "Reads and writes that failed"
    return {
        "failed_reads": _metric("counter", "failed_operations", "{operation}", failed, _READ),
        "failed_writes": _metric("counter", "failed_operations", "{operation}", failed, _WRITE),
        "invalid_io": _metric("counter", "invalid_operations", "{operation}", "Requests not of whole pages"),
        "notify_free": _metric("counter", "freed_pages", "{page}", "Pages given back: swap slots, discards"),
    }


def _writeback() -> dict[str, Metric]:
    io = "Bytes read from and written to the backing device"
    return {
        "bd_count": _metric("updowncounter", "writeback.usage", "By", "What the backing device holds"),
        "bd_reads": _metric("counter", "writeback.io", "By", io, _READ),
        "bd_writes": _metric("counter", "writeback.io", "By", io, _WRITE),
    }


def _metric(
    kind: Kind,
    name: str,
    unit: str,
    description: str,
    attributes: Mapping[str, AttributeValue] = NO_ATTRIBUTES,
) -> Metric:
    return Metric(kind, linux("memory", f"zram.{name}"), unit, description, attributes)


def _mm_stat(data: bytes) -> dict[str, int]:
    amounts = zram.columns(data, zram.MM_STAT)
    if amounts.get("mem_limit") == 0:  # no limit
        del amounts["mem_limit"]
    return amounts


def _io_stat(data: bytes) -> dict[str, int]:
    return zram.columns(data, zram.IO_STAT)


def _bd_stat(data: bytes) -> dict[str, int]:
    units = zram.columns(data, zram.BD_STAT)
    return {key: number * zram.BD_UNIT for key, number in units.items() if number <= _MOST_UNITS}
