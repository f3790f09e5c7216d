"""The io controller's files (admin-guide/cgroup-v2.rst, "IO").

    io.stat     8:16 rbytes=1459200 wbytes=314773504 rios=192 wios=353 dbytes=0 dios=0
    io.max      8:16 rbps=2097152 wbps=max riops=max wiops=120

A device without any io is printed without values. Writeback is charged to the root cgroup unless
the filesystem supports cgroup writeback.
"""

from __future__ import annotations

from collections.abc import Callable

from cgotel.collectors.cgroup.tables import Family
from cgotel.collectors.tables import MICROSECONDS, NOTHING, FileTable, pairs
from cgotel.kernel import formats
from cgotel.kernel.formats import Columns
from cgotel.model import AttributeValue, Instrument, Series

_DIRECTIONS = {"r": "read", "w": "write"}


def tables(family: Family, device_name: Callable[[str], str]) -> list[FileTable]:
    """What is read for a cgroup of this family; ``device_name`` turns ``8:16`` into ``sdb``."""
    return [
        _stat(family, device_name),
        _max(family, device_name),
        _weight(family),
        _latency(family, device_name),
    ]


def _stat(family: Family, device_name: Callable[[str], str]) -> FileTable:
    io = family.counter("disk.io", "By", "Bytes read and written")
    operations = family.counter("disk.operations", "{operation}", "Reads and writes")
    known: dict[str, tuple[Instrument, str]] = {
        "rbytes": (io, "read"),
        "wbytes": (io, "write"),
        "rios": (operations, "read"),
        "wios": (operations, "write"),
        "dbytes": (family.counter("disk.discard.io", "By", "Bytes discarded"), ""),
        "dios": (family.counter("disk.discard.operations", "{operation}", "Discards"), ""),
    }

    def make(device: str, key: str) -> Series | None:
        if key not in known:
            return None
        instrument, direction = known[key]
        attributes: dict[str, AttributeValue] = {"system.device": device_name(device)}
        if direction:
            attributes["disk.io.direction"] = direction
        return instrument.series(f"io.stat.{device}.{key}", attributes=attributes)

    return pairs("io.stat", make)


def _max(family: Family, device_name: Callable[[str], str]) -> FileTable:
    by_unit = {
        "bps": family.gauge("disk.limit.io", "By/s", "Limit of bytes per second; absent without one"),
        "iops": family.gauge("disk.limit.operations", "{operation}/s", "Limit of operations per second"),
    }

    def make(device: str, key: str) -> Series | None:
        direction, instrument = _DIRECTIONS.get(key[:1]), by_unit.get(key[1:])
        if direction is None or instrument is None:
            return None
        attributes = {"system.device": device_name(device), "disk.io.direction": direction}
        return instrument.series(f"io.max.{device}.{key}", attributes=attributes)

    return pairs("io.max", make)


def _weight(family: Family) -> FileTable:
    """io.weight: ``default 100`` first, then a line for each device that differs."""
    weight = family.gauge("disk.weight", "1", "Share of io against siblings, 1 to 10000")
    wanted = (weight.series("io.weight"),)

    def parse(data: bytes) -> Columns[Series]:
        first, newline, _ = data.partition(b"\n")
        name, _, token = first.partition(b" ")
        number = formats.number(token) if newline and name == b"default" else None
        return NOTHING if number is None else Columns(wanted, [number])

    return FileTable("io.weight", parse)


def _latency(family: Family, device_name: Callable[[str], str]) -> FileTable:
    target = family.gauge("disk.latency_target", "s", "Latency that io.latency protects", "double")

    def make(device: str, key: str) -> Series | None:
        if key != "target":
            return None
        return target.series(
            f"io.latency.{device}.target", MICROSECONDS, {"system.device": device_name(device)}
        )

    return pairs("io.latency", make)
