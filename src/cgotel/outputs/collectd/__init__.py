"""Sweeps as collectd's values: pure arithmetic, which knows nothing of the daemon.

A counter is DERIVE, never COUNTER: collectd takes a COUNTER that falls for one that has wrapped,
and a cgroup made anew would show an absurd rate. What its type cannot hold has no value, as what
was not measured: collectd would keep NaN of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from cgotel.model import Number, Reading, Series
from cgotel.outputs.collectd.identifiers import fitting, plugin_instance
from cgotel.outputs.collectd.rows import WORDS, Row, row_of
from cgotel.outputs.collectd.types import TYPES, DataSource

__all__ = ["Entry", "Mapper", "Value"]

_PLACEHOLDER = re.compile(r"\{([^}]+)\}")
_PAGE_SIZE = "cgroup.hugetlb.page_size"
_CGROUP = "process.linux.cgroup"
_LAYOUTS = 4096


class Value(NamedTuple):
    """One value of collectd: as many numbers as its type has data sources, in their order."""

    type: str
    type_instance: str
    numbers: list[Number]


class Entry(NamedTuple):
    """The values of one reading, under one plugin instance; ``meta`` names the cgroup in full."""

    plugin_instance: str
    meta: Mapping[str, str]
    values: list[Value]


class _Cell(NamedTuple):
    """Where a data source's number stands in a reading, and how it becomes collectd's."""

    place: int
    scale: int
    divisor: int
    source: DataSource

    def number(self, values: Sequence[Number]) -> Number | None:
        """The number in collectd's unit; None for one that the type cannot hold."""
        raw, source = values[self.place], self.source
        counted = source.kind == "DERIVE"
        number = raw * self.scale // self.divisor if counted else raw * self.scale / self.divisor
        if not source.minimum <= number <= source.maximum:
            return None
        return int(number) if counted else number


class _Slot(NamedTuple):
    type: str
    type_instance: str
    cells: tuple[_Cell, ...]


class Mapper:
    """Makes values of readings; the layout of a set of series is made once and kept.

    ``missing`` are types that the daemon does not know: values of them are left out.
    """

    def __init__(self, missing: Iterable[str] = ()) -> None:
        self._missing = frozenset(missing)
        self._layouts: dict[int, tuple[tuple[Series, ...], list[_Slot]]] = {}
        self._names: dict[tuple[str, str], tuple[str, Mapping[str, str]]] = {}

    def entries(self, readings: Iterable[Reading]) -> list[Entry]:
        """The values of a sweep."""
        before, self._names = self._names, {}
        found = []
        for reading in readings:
            key = (reading.entity.kind, reading.entity.key)
            name = self._names[key] = before.get(key) or _name(reading)
            found.append(Entry(*name, list(self._values(reading))))
        return found

    def _values(self, reading: Reading) -> Iterator[Value]:
        for slot in self._layout(reading.series):
            numbers = [cell.number(reading.values) for cell in slot.cells]
            if None not in numbers:
                yield Value(slot.type, slot.type_instance, numbers)  # type: ignore[arg-type]

    def _layout(self, series: tuple[Series, ...]) -> list[_Slot]:
        known = self._layouts.get(id(series))
        if known is None or known[0] is not series:
            if len(self._layouts) >= _LAYOUTS:
                self._layouts.clear()
            known = self._layouts[id(series)] = (series, layout(series, self._missing))
        return known[1]


def layout(series: Sequence[Series], missing: frozenset[str] = frozenset()) -> list[_Slot]:
    """Where each value's numbers stand; a value that lacks one of its data sources is none."""
    cells: dict[tuple[str, str], dict[str, _Cell]] = {}
    for place, one in enumerate(series):
        row = row_of(one.instrument)
        source = _source(row, one)
        if row.type not in missing and source is not None:
            identity = (row.type, fitting(_instance(row, one)))
            cell = _Cell(place, row.scale, one.divisor, source)
            cells.setdefault(identity, {}).setdefault(source.name, cell)
    return [
        _Slot(*identity, tuple(found[source.name] for source in TYPES[identity[0]]))
        for identity, found in cells.items()
        if len(found) == len(TYPES[identity[0]])
    ]


def _name(reading: Reading) -> tuple[str, Mapping[str, str]]:
    path = reading.entity.attributes.get(_CGROUP)
    return plugin_instance(reading.entity), {} if path is None else {_CGROUP: str(path)}


def _source(row: Row, series: Series) -> DataSource | None:
    """The data source that a series fills; None where its attribute's value fills none."""
    name: str | None
    if isinstance(row.source, str):
        name = row.source
    else:
        attribute, names = row.source
        name = names.get(str(dict(series.attributes).get(attribute)))
    return next((source for source in TYPES[row.type] if source.name == name), None)


def _instance(row: Row, series: Series) -> str:
    attributes = dict(series.attributes)
    text = _PLACEHOLDER.sub(lambda found: _word(found[1], attributes.pop(found[1], "")), row.instance)
    if row.instance == series.instrument.name:  # without a row: its attributes tell it from others
        text = "-".join([text, *map(str, attributes.values())])
    return text


def _word(attribute: str, value: object) -> str:
    if attribute == _PAGE_SIZE and isinstance(value, int):
        return (
            f"{value >> 30}GB"
            if value >= 1 << 30
            else f"{value >> 20}MB"
            if value >= 1 << 20
            else f"{value >> 10}KB"
        )
    text = str(value).strip("/")
    return WORDS.get(text, text)
