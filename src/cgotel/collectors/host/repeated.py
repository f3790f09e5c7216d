"""The same file of several devices or nodes: the metrics once, the series for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeAlias

from cgotel.collectors.instruments import Instruments, Kind
from cgotel.collectors.tables import FileTable
from cgotel.model import NO_ATTRIBUTES, AttributeValue, Series

MakeTable: TypeAlias = Callable[[str, Mapping[str, Series]], FileTable]
"""From a file's name and its rows to its table, as `cgotel.collectors.tables.keys`."""


class Metric(NamedTuple):
    """What a key of the file is, and the attributes that tell it from another key's series."""

    kind: Kind
    name: str
    unit: str
    description: str
    attributes: Mapping[str, AttributeValue] = NO_ATTRIBUTES


class Repeated:
    """A file that each of several devices has."""

    def __init__(
        self, make: Instruments, file: str, metrics: Mapping[str, Metric], make_table: MakeTable
    ) -> None:
        self._file = file
        self._make_table = make_table
        self._metrics = {
            key: (make.make(metric.kind, metric.name, metric.unit, metric.description), metric.attributes)
            for key, metric in metrics.items()
        }

    def of(self, device: str, attributes: Mapping[str, AttributeValue]) -> FileTable:
        """The table for the file of one device."""
        return self._make_table(
            self._file,
            {
                key: instrument.series(f"{device}.{self._file}.{key}", attributes={**attributes, **more})
                for key, (instrument, more) in self._metrics.items()
            },
        )
