"""The shapes that collectors' tables share: a row says which metric a kernel key is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from cgotel.kernel import formats
from cgotel.kernel.formats import Columns, FlatKeyed, NestedKeyed
from cgotel.model import NO_ATTRIBUTES, AttributeValue, Instrument, Series

Parse: TypeAlias = Callable[[bytes], Columns[Series]]

NOTHING: Columns[Series] = Columns((), [])

MICROSECONDS = 1_000_000
PERCENT = 100

_SERIES_PER_FILE = 4096  # devices come and go; a hostile or broken file must not grow memory


@dataclass(frozen=True, slots=True)
class FileTable:
    """One kernel file: how it is parsed, and whether it is read on every sweep or on the slow beat."""

    file: str
    parse: Parse
    slow: bool = False


def value(
    file: str, instrument: Instrument, attributes: Mapping[str, AttributeValue] = NO_ATTRIBUTES
) -> FileTable:
    """A file of one whole number; `max` gives no point."""
    wanted = (instrument.series(file, attributes=attributes),)

    def parse(data: bytes) -> Columns[Series]:
        number = formats.single(data)
        return NOTHING if number is None else Columns(wanted, [number])

    return FileTable(file, parse)


def counted(file: str, instrument: Instrument) -> FileTable:
    """A list of ids such as ``0-3,7``, of which the count is reported."""
    wanted = (instrument.series(f"{file}_count"),)

    def parse(data: bytes) -> Columns[Series]:
        count = formats.count_list(data)
        return NOTHING if count is None else Columns(wanted, [count])

    return FileTable(file, parse)


def keys(file: str, rows: Mapping[str, Series], slow: bool = False) -> FileTable:
    """A flat keyed file: kernel key -> series."""
    return FileTable(file, FlatKeyed({k.encode(): s for k, s in rows.items()}.get).columns, slow)


def by_key(file: str, make: Callable[[str], Series | None], slow: bool = False) -> FileTable:
    """A flat keyed file whose keys are not known beforehand (resources of misc.*)."""
    return FileTable(file, FlatKeyed(_remembered(lambda key: make(text(key)))).columns, slow)


def pairs(file: str, make: Callable[[str, str], Series | None], slow: bool = False) -> FileTable:
    """A nested keyed file: (line's key, sub-key) -> series, made at first sight."""
    seen: dict[tuple[bytes, bytes], Series | None] = {}

    def wanted(outer: bytes, key: bytes) -> Series | None:
        if (outer, key) not in seen:
            if len(seen) >= _SERIES_PER_FILE:
                return None
            seen[outer, key] = make(text(outer), text(key))
        return seen[outer, key]

    return FileTable(file, NestedKeyed(wanted).columns, slow)


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


def _remembered(make: Callable[[bytes], Series | None]) -> Callable[[bytes], Series | None]:
    seen: dict[bytes, Series | None] = {}

    def wanted(key: bytes) -> Series | None:
        if key not in seen:
            if len(seen) >= _SERIES_PER_FILE:
                return None
            seen[key] = make(key)
        return seen[key]

    return wanted
