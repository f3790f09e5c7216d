"""meminfo and swaps: bytes, states that do not overlap, and no swap that is not there."""

import pytest
from tests.unit.collectors.host import machine

from cgotel.collectors.host import memory
from cgotel.collectors.instruments import Instruments
from cgotel.model import Entity, Reading

_KIB = 1024


def read(meminfo: str = "", swaps: str = "") -> Reading:
    contents = {"meminfo": meminfo.encode(), "swaps": swaps.encode()}
    columns = [table.parse(contents[table.file]) for table in memory.tables(Instruments())]
    points = [point for column in columns for point in zip(*column, strict=True)]
    return Reading.of(Entity("host", "h"), 0, points)


@pytest.mark.parametrize(
    ("name", "attributes", "expected"),
    [
        ("system.memory.limit", {}, 24684084 * _KIB),
        ("system.memory.linux.available", {}, 23790728 * _KIB),
        ("system.memory.linux.shared", {}, 8872 * _KIB),
        ("system.memory.usage", {"system_memory_state": "used"}, (24684084 - 23790728) * _KIB),
        ("system.memory.usage", {"system_memory_state": "free"}, 21253336 * _KIB),
        ("system.memory.usage", {"system_memory_state": "buffers"}, 158192 * _KIB),
        ("system.memory.usage", {"system_memory_state": "cached"}, 2367776 * _KIB),
        ("system.memory.linux.slab.usage", {"system_memory_linux_slab_state": "reclaimable"}, 331068 * _KIB),
        ("system.memory.linux.slab.usage", {"system_memory_linux_slab_state": "unreclaimable"}, 36436 * _KIB),
        ("system.memory.linux.hugepages.limit", {}, 16),
        ("system.memory.linux.hugepages.reserved", {}, 2),
        ("system.memory.linux.hugepages.surplus", {}, 1),
        ("system.memory.linux.hugepages.page_size", {}, 2048 * _KIB),
        ("system.memory.linux.hugepages.usage", {"system_memory_linux_hugepages_state": "used"}, 6),
        ("system.memory.linux.hugepages.usage", {"system_memory_linux_hugepages_state": "free"}, 10),
    ],
)
def test_memory(name: str, attributes: dict[str, str], expected: int) -> None:
    reading = read(meminfo=machine.MEMINFO)
    assert reading.metric(name, **attributes) == expected
    assert len(reading.values) == 15


def test_what_is_used_is_unknown_without_what_is_available() -> None:
    """MemAvailable came with Linux 3.14, and a container may hide it."""
    reading = read(meminfo="MemTotal: 100 kB\nMemFree: 40 kB\n")
    assert reading.value("meminfo.MemUsed") is None
    assert reading.value("meminfo.MemFree") == 40 * _KIB


def test_more_available_than_there_is_cannot_be_used() -> None:
    assert read(meminfo="MemTotal: 100 kB\nMemAvailable: 140 kB\n").value("meminfo.MemUsed") is None


def test_swap_by_device() -> None:
    reading = read(swaps=machine.SWAPS)
    usage = {
        (dict(series.attributes)["system.device"], dict(series.attributes)["system.paging.state"]): value
        for series, value in reading.points
    }
    assert usage == {
        ("zram1", "used"): 128 * _KIB,
        ("zram1", "free"): (65532 - 128) * _KIB,
        ("/swapfile", "used"): 0,
        ("/swapfile", "free"): 1048572 * _KIB,
    }


def test_no_swap_device_is_not_zero_swap() -> None:
    assert list(read(swaps=machine.SWAPS.partition("\n")[0] + "\n").points) == []


def test_the_same_device_keeps_its_series() -> None:
    _, swaps = memory.tables(Instruments())
    first = swaps.parse(machine.SWAPS.encode())
    again = swaps.parse(machine.SWAPS.replace("128", "256").encode())
    assert first.wanted == again.wanted
    assert first.values != again.values
