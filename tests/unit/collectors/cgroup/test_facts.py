"""The numbers that others are made of, wherever they stand in a row."""

from cgotel.collectors.cgroup.facts import OWN, USE, Use, picker
from cgotel.collectors.cgroup.limits import Own
from cgotel.model import Instrument

GAUGE = Instrument("g", "gauge", "1", "")


def row(*sources: str):
    return [GAUGE.series(source) for source in sources]


def test_a_picker_finds_its_sources_wherever_they_stand() -> None:
    series = row("a", "b", "c")
    assert picker(series, ("b", "a"))([1, 2, 3, None]) == (2, 1)
    assert picker(series, ("c", "d"))([1, 2, 3, None]) == (3, None)
    assert picker([], ("a", "b"))([None]) == (None, None)


def test_every_field_has_one_source() -> None:
    assert len(set(OWN)) == len(OWN) == len(Own._fields)
    assert len(set(USE)) == len(USE) == len(Use._fields)
