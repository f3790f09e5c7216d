"""buddyinfo: one share a zone, and every count of blocks where it is asked for."""

import pytest
from tests.unit.collectors.host import machine

from cgotel.collectors.host import fragmentation
from cgotel.collectors.instruments import Instruments
from cgotel.model import AttributeValue

Points = dict[str, dict[tuple[AttributeValue, ...], float]]


def read(order: int = 9, free_blocks: bool = False, content: str = machine.BUDDYINFO) -> Points:
    table = fragmentation.table(Instruments(), order, free_blocks)
    points: Points = {}
    for series, value in zip(*table.parse(content.encode()), strict=True):
        attributes = tuple(dict(series.attributes).values())
        points.setdefault(series.instrument.name, {})[attributes] = value
    return points


def test_one_share_a_zone() -> None:
    (shares,) = read().values()
    assert shares.keys() == {(0, "dma", 9), (0, "normal", 9), (1, "normal", 9)}
    assert shares[0, "dma", 9] == pytest.approx(1 / 15)
    assert shares[0, "normal", 9] == pytest.approx(0.626, abs=1e-3)


def test_the_order_is_a_choice() -> None:
    assert read(order=0) == {
        "system.memory.linux.fragmentation": {(0, "dma", 0): 0, (0, "normal", 0): 0, (1, "normal", 0): 0}
    }


def test_an_order_beyond_the_kernels_tells_nothing() -> None:
    assert read(order=11) == {}


def test_free_blocks_by_size() -> None:
    counts = read(free_blocks=True)["system.memory.linux.free_block.count"]
    assert len(counts) == 3 * 11
    assert counts[1, "normal", 2] == 1278
    assert counts[0, "dma", 10] == 3


def test_series_stay() -> None:
    table = fragmentation.table(Instruments(), 9, free_blocks=True)
    first, again = (table.parse(machine.BUDDYINFO.encode()) for _ in range(2))
    assert all(one is other for one, other in zip(first.wanted, again.wanted, strict=True))
