"""A set of series as bytes on the wire, with holes for the times and the values.

Of a data point only ``time_unix_nano``, ``start_time_unix_nano`` and the value change from sweep to
sweep and from entity to entity, and all three are eight bytes wide (fixed64). Everything around
them is made once for a set of series and shared by all entities that have this set; a sweep then
costs one call of `struct.Struct.pack` an entity, and nothing is kept but the bytes between the
holes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby, product
from math import isfinite
from operator import attrgetter, itemgetter
from typing import Any, TypeAlias

from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    AGGREGATION_TEMPORALITY_CUMULATIVE,
    AGGREGATION_TEMPORALITY_DELTA,
    DATA_POINT_FLAGS_NO_RECORDED_VALUE_MASK,
    Gauge,
    Metric,
    NumberDataPoint,
    ScopeMetrics,
    Sum,
)

from cgotel.model import Instrument, Number, Series
from cgotel.outputs.otlp import wire
from cgotel.outputs.otlp.attributes import key_values, plain

_START = wire.key(NumberDataPoint.START_TIME_UNIX_NANO_FIELD_NUMBER, wire.FIXED64)
_TIME = wire.key(NumberDataPoint.TIME_UNIX_NANO_FIELD_NUMBER, wire.FIXED64)
_AS_INT = wire.key(NumberDataPoint.AS_INT_FIELD_NUMBER, wire.FIXED64)
_AS_DOUBLE = wire.key(NumberDataPoint.AS_DOUBLE_FIELD_NUMBER, wire.FIXED64)
_NO_VALUE = wire.key(NumberDataPoint.FLAGS_FIELD_NUMBER, wire.VARINT) + wire.varint(
    DATA_POINT_FLAGS_NO_RECORDED_VALUE_MASK
)
_FIXED64 = struct.Struct("<Q")
_FORMAT = {"int": "q", "double": "d"}

_SLOTS = {
    slot: index
    for index, slot in enumerate(product(("gauge", "updowncounter", "counter"), ("int", "double")))
}

Stamps: TypeAlias = tuple[bytes, ...]
"""What stands before the value of a point: its times and the key of its value, one for each slot."""


def stamps(time_ns: int, began_ns: int | None, since_ns: int | None) -> Stamps:
    """The stamps of one entity at one instant, in Unix nanoseconds.

    ``began_ns`` is where its sums begin, ``since_ns`` where its counters do: the same for cumulative
    ones, the instant before for deltas. None is "unknown", which the data model writes as 0.
    """
    time = _TIME + _FIXED64.pack(time_ns)
    began = _START + _FIXED64.pack(min(began_ns or 0, time_ns)) + time
    since = _START + _FIXED64.pack(min(since_ns or 0, time_ns)) + time
    return (
        time + _AS_INT,
        time + _AS_DOUBLE,
        began + _AS_INT,
        began + _AS_DOUBLE,
        since + _AS_INT,
        since + _AS_DOUBLE,
    )


_STAMP_SIZES = tuple(map(len, stamps(0, 0, 0)))


class Layout:
    """The metrics of one ScopeMetrics for some of the series of a reading.

    ``order`` chooses them by index, those of one instrument next to each other. ``size`` is in bytes.
    """

    __slots__ = ("_args", "_delta", "_divisors", "_floored", "_pick", "_slots", "_struct", "series", "size")

    def __init__(self, series: Sequence[Series], order: Sequence[int], delta: bool) -> None:
        self.series = tuple([series[index] for index in order])
        self._delta = delta
        slots = [_slot(s.instrument) for s in self.series]
        pieces = _pieces(self.series, stale=False, delta=delta)
        self._struct = struct.Struct(
            "<" + "".join(map(_format, pieces, slots, self.series)) + f"{len(pieces[-1])}s"
        )
        self.size = self._struct.size
        self._args: list[Any] = [arg for piece in pieces for arg in (piece, b"", 0)][:-2]
        self._pick = _picker(order)
        self._slots = _picker(slots)
        self._divisors = [s.divisor if s.instrument.number == "double" else 0 for s in self.series]
        self._floored = [
            (at, s.divisor)
            for at, s in enumerate(self.series)
            if s.instrument.number == "int" and s.divisor != 1
        ]

    def fill(self, values: Sequence[Number], stamped: Stamps) -> bytes | None:
        """The metrics with the values of a reading.

        None where a value has no place on the wire: NaN, an infinity, beyond int64, no number.
        """
        try:
            numbers = self._converted(self._pick(values))
            finite = isfinite(sum(numbers))  # one look at all: NaN and infinities survive a sum
            return self._packed(numbers, stamped) if finite else None
        except (struct.error, TypeError, OverflowError, ValueError):
            return None

    def salvage(self, values: Sequence[Number], stamped: Stamps) -> tuple[bytes, list[Series]]:
        """As `fill`, without the points that have no place on the wire; their series are given back."""
        fitting = []
        unfit = []
        for series, raw in zip(self.series, self._pick(values), strict=True):
            number = _fitting(series, raw)
            if number is None:
                unfit.append(series)
            else:
                fitting.append((series, number))
        if not fitting:
            return b"", unfit
        rest = Layout([series for series, _ in fitting], range(len(fitting)), self._delta)
        return rest._packed([number for _, number in fitting], stamped), unfit

    def stale(self, stamped: Stamps) -> bytes:
        """The last points of these series: without a value, marked "no recorded value"."""
        *pieces, closing = _pieces(self.series, stale=True, delta=self._delta)
        times = [stamp[:-1] for stamp in self._slots(stamped)]
        return b"".join([part for pair in zip(pieces, times, strict=True) for part in pair]) + closing

    def _converted(self, raws: Sequence[Number]) -> list[Number]:
        """`Series.convert` for all at once."""
        numbers = [raw / by if by else raw for raw, by in zip(raws, self._divisors, strict=True)]
        for at, divisor in self._floored:
            numbers[at] = int(numbers[at]) // divisor
        return numbers

    def _packed(self, numbers: Sequence[Number], stamped: Stamps) -> bytes:
        args = self._args.copy()
        args[1::3] = self._slots(stamped)
        args[2::3] = numbers
        return self._struct.pack(*args)


def by_instrument(series: Sequence[Series]) -> list[int]:
    """The indices of the series, those of one instrument next to each other."""
    groups: dict[Instrument, list[int]] = {}
    for index, one in enumerate(series):
        groups.setdefault(one.instrument, []).append(index)
    return [index for group in groups.values() for index in group]


def _pieces(series: Iterable[Series], stale: bool, delta: bool) -> list[bytes]:
    """The bytes before each point's stamp, and those after the last point."""
    pieces = [b""]
    for instrument, group in groupby(series, attrgetter("instrument")):
        hole = _STAMP_SIZES[_slot(instrument)] + (-1 if stale else _FIXED64.size)
        tails = [_tail(one, stale) for one in group]
        kind = Gauge if instrument.kind == "gauge" else Sum
        heads = [wire.head(kind.DATA_POINTS_FIELD_NUMBER, hole + len(tail)) for tail in tails]
        closing = _closing(instrument, delta)
        size = sum(map(len, heads)) + sum(map(len, tails)) + hole * len(tails) + len(closing)
        pieces[-1] += _opening(instrument, size)
        for head, tail in zip(heads, tails, strict=True):
            pieces[-1] += head
            pieces.append(tail)
        pieces[-1] += closing
    return pieces


def _opening(instrument: Instrument, size: int) -> bytes:
    """All of a Metric that stands before its data points; its data are ``size`` bytes."""
    metric: bytes = Metric(
        name=plain(instrument.name), description=plain(instrument.description), unit=plain(instrument.unit)
    ).SerializeToString()
    is_gauge = instrument.kind == "gauge"
    metric += wire.head(Metric.GAUGE_FIELD_NUMBER if is_gauge else Metric.SUM_FIELD_NUMBER, size)
    return wire.head(ScopeMetrics.METRICS_FIELD_NUMBER, len(metric) + size) + metric


def _closing(instrument: Instrument, delta: bool) -> bytes:
    """What follows the data points of a Sum."""
    if instrument.kind == "gauge":
        return b""
    is_counter = instrument.kind == "counter"
    temporality = (
        AGGREGATION_TEMPORALITY_DELTA if delta and is_counter else AGGREGATION_TEMPORALITY_CUMULATIVE
    )
    closing: bytes = Sum(aggregation_temporality=temporality, is_monotonic=is_counter).SerializeToString()
    return closing


def _tail(series: Series, stale: bool) -> bytes:
    """What follows the value of a point."""
    attributes: bytes = NumberDataPoint(attributes=key_values(series.attributes)).SerializeToString()
    return attributes + _NO_VALUE if stale else attributes


def _slot(instrument: Instrument) -> int:
    return _SLOTS[instrument.kind, instrument.number]


def _format(piece: bytes, slot: int, series: Series) -> str:
    return f"{len(piece)}s{_STAMP_SIZES[slot]}s{_FORMAT[series.instrument.number]}"


def _picker(indices: Sequence[int]) -> Callable[[Sequence[Any]], Sequence[Any]]:
    """Gives the items at these indices; `itemgetter` alone gives no tuple for a single one."""
    if len(indices) == 1:
        only = indices[0]
        return lambda row: (row[only],)
    return itemgetter(*indices)


def _fitting(series: Series, raw: Number) -> Number | None:
    """The value in the unit of its instrument, None if the wire has no place for it."""
    try:
        number = series.convert(raw)
        if series.instrument.number == "int" and isinstance(number, float) and number.is_integer():
            number = int(number)
        struct.pack(_FORMAT[series.instrument.number], number)
        return number if isfinite(number) else None
    except (struct.error, TypeError, OverflowError, ValueError):
        return None
