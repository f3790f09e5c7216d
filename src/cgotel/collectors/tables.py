"""The shapes that collectors' tables share: a row says which metric a kernel key is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from cgotel.kernel import formats
from cgotel.kernel.formats import Columns, FlatKeyed, Keyed, NestedKeyed, Single
from cgotel.model import NO_ATTRIBUTES, AttributeValue, Instrument, Number, Point, Series

Parse: TypeAlias = Callable[[bytes], Columns[Series]]

NOTHING: Columns[Series] = Columns((), [])

MICROSECONDS = 1_000_000
PERCENT = 100

_SERIES_PER_FILE = 65536  # devices come and go; a broken file must not grow memory without end


@dataclass(frozen=True, slots=True)
class FileTable:
    """One kernel file: how it is parsed, and whether it is read on every sweep or on the slow beat.

    ``many`` marks a file that the kernel writes record by record (see `KernelFile`). ``keyed`` is the
    format of a file that holds the same keys in every directory: those can be parsed as one text.
    """

    file: str
    parse: Parse
    slow: bool = False
    many: bool = False
    keyed: Keyed[Series] | None = None


def value(
    file: str, instrument: Instrument, attributes: Mapping[str, AttributeValue] = NO_ATTRIBUTES
) -> FileTable:
    """A file of one whole number; `max` gives no point."""
    single = Single(instrument.series(file, attributes=attributes))
    return FileTable(file, single.columns, keyed=single)


def counted(file: str, instrument: Instrument) -> FileTable:
    """A list of ids such as ``0-3,7``, of which the count is reported."""
    wanted = (instrument.series(f"{file}_count"),)

    def parse(data: bytes) -> Columns[Series]:
        count = formats.count_list(data)
        return NOTHING if count is None else Columns(wanted, [count])

    return FileTable(file, parse)


def keys(file: str, rows: Mapping[str, Series], slow: bool = False) -> FileTable:
    """A flat keyed file: kernel key -> series."""
    flat = FlatKeyed({key.encode(): series for key, series in rows.items()}.get)
    return FileTable(file, flat.columns, slow, keyed=flat)


def by_key(file: str, make: Callable[[str], Series | None], slow: bool = False) -> FileTable:
    """A flat keyed file whose keys are not known beforehand (resources of misc.*)."""
    return FileTable(file, FlatKeyed(_at_first_sight(make)).columns, slow)


def pairs(
    file: str,
    make: Callable[[str, str], Series | None],
    slow: bool = False,
    decimals: bool = False,
    alike: bool = False,
) -> FileTable:
    """A nested keyed file: (line's key, sub-key) -> series, made at first sight.

    ``alike``: its keys are the same in every directory, not devices or nodes.
    """
    nested = NestedKeyed(_at_first_sight(make), decimals)
    return FileTable(file, nested.columns, slow, keyed=nested if alike else None)


def computed(file: str, points: Callable[[bytes], Iterable[Point]], many: bool = False) -> FileTable:
    """A file whose points take more than a key each; ``points`` is total, as parsers are."""

    def parse(data: bytes) -> Columns[Series]:
        found = list(points(data))
        return Columns(tuple([series for series, _ in found]), [number for _, number in found])

    return FileTable(file, parse, many=many)


def named(file: str, rows: Mapping[str, Series], parse: Callable[[bytes], Mapping[str, Number]]) -> FileTable:
    """A file of a format of its own, which ``parse`` makes into numbers by name: name -> series."""

    def points(data: bytes) -> Iterable[Point]:
        numbers = parse(data)
        return [(series, numbers[name]) for name, series in rows.items() if name in numbers]

    return computed(file, points)


def rows(
    file: str, instrument: Instrument, attribute: str, kernel_keys: str, divisor: int = 1
) -> dict[str, Series]:
    """Rows of one instrument that differ in one attribute: ``kernel_key`` or ``kernel_key=value``."""
    table = {}
    for word in kernel_keys.split():
        key, _, attribute_value = word.partition("=")
        attributes = {attribute: attribute_value or key}
        table[key] = instrument.series(f"{file}.{key}", divisor, attributes)
    return table


def text(name: bytes) -> str:
    """A kernel name as valid text, whatever its bytes."""
    return name.decode("utf-8", "backslashreplace")


def _at_first_sight(make: Callable[..., Series | None]) -> Callable[..., Series | None]:
    """``make`` once for each key; when too many are known, all are forgotten and made anew."""
    known: dict[tuple[bytes, ...], Series] = {}

    def wanted(*key: bytes) -> Series | None:
        if (series := known.get(key)) is None and (series := make(*map(text, key))) is not None:
            if len(known) >= _SERIES_PER_FILE:
                known.clear()
            known[key] = series
        return series

    return wanted
