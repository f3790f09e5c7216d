"""Which field of which line each number of a reading goes to: prepared once, filled every sweep."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import itemgetter
from typing import NamedTuple, TypeAlias

from cgotel.model import Number, Series
from cgotel.outputs import line_protocol as influx

_NUMBER_BYTES = 26  # of a number with its sign, suffix, "=" and ","
_LARGEST, _SMALLEST = 2**63 - 1, -(2**63)
_PERCENT = 100
_OWNER = "cgroup.limit.owner"
_SOURCE_STATUS = "cgotel.source.status"  # one line tells all of them: Lines.of_sources

_Compute: TypeAlias = Callable[[Sequence[Number]], Number]


class _Field(NamedTuple):
    """One number of a line: its place among all numbers, and the text of its owner beside it."""

    place: int
    key: str
    integer: bool
    owner: str = ""

    def written(self, number: str) -> str:
        """The field with its number."""
        return f"{self.key}={number}" + (f",{self.key}.owner={self.owner}" if self.owner else "")

    @property
    def template(self) -> str:
        """The field as `%` fills it."""
        number = "\0i" if self.integer else "\1"  # no key has control characters
        return self.written(number).replace("%", "%%").replace("\0", "%d").replace("\1", "%s")


class _Line(NamedTuple):
    """The tags that a line has beside the entity's, and its fields."""

    tags: str
    fields: tuple[_Field, ...]
    template: str
    pick: Callable[[Sequence[Number]], tuple[Number, ...]]


class Layout:
    """The lines of one set of series. Filling one is a single ``%`` over all of its numbers.

    Numbers that cannot be filled in like that (an infinity, more than 63 bits) are rare; they send
    their line the slow way.
    """

    def __init__(self, series: tuple[Series, ...]) -> None:
        self.series = series
        self._computed: list[_Compute] = []
        fields: dict[str, dict[str, _Field]] = {"": {}}
        for place, one in enumerate(series):
            if one.instrument.name != _SOURCE_STATUS:
                self._add(fields, place, one)
        for key, compute in _of_the_native_plugin(series):
            if key not in fields[""]:
                fields[""][key] = _Field(self._place(compute), key, integer=True)
        self._lines = [_line(tags, part) for tags, known in fields.items() for part in _parts(known.values())]

    def lines(self, head: str, values: Sequence[Number], time_ns: int) -> Iterator[tuple[str, int]]:
        """Every line of a reading, and how many of its numbers cannot be written."""
        if self._computed:
            values = [*values, *(compute(values) for compute in self._computed)]
        for line in self._lines:
            numbers = line.pick(values)
            if _ordinary(numbers):
                yield f"{head}{line.tags} {line.template % numbers} {time_ns}\n", 0
            else:
                found = [pair for pair in map(_checked, line.fields, numbers) if pair]
                whole = f"{head}{line.tags} {','.join(found)} {time_ns}\n" if found else ""
                yield whole, len(numbers) - len(found)

    def _add(self, fields: dict[str, dict[str, _Field]], place: int, series: Series) -> None:
        """Put a series where it belongs; of two with the same name and tags, the first stays."""
        own_name = series.source == series.instrument.name
        number = place
        if own_name and series.divisor != 1:
            number = self._place(lambda values: series.convert(values[place]))
        attributes = dict(series.attributes)
        owner = str(attributes.get(_OWNER, ""))
        several_owners = bool(owner) and series.instrument.kind == "counter"
        tags = _tags(series) if own_name or several_owners else ""
        key = influx.key(series.source)
        if key in fields.setdefault(tags, {}):
            tags = _tags(series)
        text = influx.quoted(owner) if owner and not tags else ""
        integer = series.instrument.number == "int" if own_name else _is_integer(series)
        fields.setdefault(tags, {}).setdefault(key, _Field(number, key, integer, text))

    def _place(self, compute: _Compute) -> int:
        self._computed.append(compute)
        return len(self.series) + len(self._computed) - 1


def _is_integer(series: Series) -> bool:
    """Whether the kernel prints an integer: always, but for percentages and what cgotel divided."""
    return series.instrument.number == "int" or series.divisor not in (1, _PERCENT)


def _tags(series: Series) -> str:
    return influx.tags((key.replace(".", "_"), value) for key, value in series.attributes)


def _of_the_native_plugin(series: tuple[Series, ...]) -> Iterator[tuple[str, _Compute]]:
    """What Telegraf's ``cgroup`` plugin has under the kernel's name and cgotel has in another form."""
    places = {one.source: place for place, one in enumerate(series)}
    user, system = places.get("cpu.stat.user_usec"), places.get("cpu.stat.system_usec")
    if user is not None and system is not None:
        yield "cpu.stat.usage_usec", lambda values: values[user] + values[system]
    limit, period = places.get("cpu.max.limit"), places.get("cpu.max.1")
    if limit is not None and period is not None:
        yield "cpu.max.0", lambda values: round(values[limit] * values[period])


def _parts(fields: Iterable[_Field]) -> Iterator[list[_Field]]:
    """Fields in order, cut where a line would get too long."""
    part: list[_Field] = []
    room = influx.MOST_FIELD_BYTES
    for field in fields:
        length = len(field.template.encode()) + _NUMBER_BYTES
        if part and length > room:
            yield part
            part, room = [], influx.MOST_FIELD_BYTES
        part.append(field)
        room -= length
    if part:
        yield part


def _line(tags: str, fields: list[_Field]) -> _Line:
    places = [field.place for field in fields]
    first = places[0]
    pick = itemgetter(*places) if len(places) > 1 else lambda values: (values[first],)
    return _Line(tags, tuple(fields), ",".join(field.template for field in fields), pick)


def _ordinary(numbers: Sequence[Number]) -> bool:
    try:
        # a NaN among them makes the sum one; it would go unseen by the comparisons
        return max(numbers) <= _LARGEST and min(numbers) >= _SMALLEST and math.isfinite(sum(numbers))
    except (TypeError, ValueError, OverflowError):
        return False


def _checked(field: _Field, value: Number) -> str:
    number = influx.number(value, field.integer)
    return "" if number is None else field.written(number)
