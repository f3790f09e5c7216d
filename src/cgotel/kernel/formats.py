"""The formats of cgroup files, from bytes to numbers (admin-guide/cgroup-v2.rst, "Format").

Every parser here is total: whatever the bytes, it returns and raises nothing. A number comes out
only if it stood there whole: a last line without its newline may be cut in the middle of a digit
and is left out, as are `max`, negative, oversized and unreadable values.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from operator import itemgetter
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")

INT64_MAX = 2**63 - 1

_DECIMAL = re.compile(rb"\d{1,15}\.\d{1,6}")
_NEWLINE = ord("\n")
_SAFE_DIGITS = 18  # so many always fit into 63 bits
_MAX_LAYOUTS = 256


def number(token: bytes) -> int | float | None:
    """``b"42"`` or ``b"0.07"`` as a number; None for `max`, a negative, or anything else."""
    if token.isdigit():
        value = int(token) if len(token) <= 19 else INT64_MAX + 1
        return value if value <= INT64_MAX else None
    return float(token) if _DECIMAL.fullmatch(token) else None


def single(data: bytes) -> int | None:
    """A single-value file such as memory.current; None for `max`, which is no limit."""
    if not data.endswith(b"\n"):
        return None
    value = number(data[:-1])
    return value if isinstance(value, int) else None


def is_max(data: bytes) -> bool:
    """Whether a limit's file says that there is no limit."""
    return data == b"max\n" or data.startswith(b"max ")


def quota_and_period(data: bytes) -> tuple[int | None, int] | None:
    """cpu.max, ``$MAX $PERIOD`` in microseconds: (None, period) without a quota, None if unreadable."""
    fields = data.split()
    if len(fields) != 2 or not data.endswith(b"\n"):
        return None
    quota, period = number(fields[0]), number(fields[1])
    if not isinstance(period, int) or period == 0 or isinstance(quota, float):
        return None
    if quota is None and fields[0] != b"max":
        return None
    return quota, period


def count_list(data: bytes) -> int | None:
    """How many ids a list such as cpuset.cpus.effective (``0-3,7``) names; None if unreadable."""
    if not data.endswith(b"\n"):
        return None
    text = data.strip()
    if not text:
        return 0
    count = 0
    for part in text.split(b","):
        first, dash, last = part.partition(b"-")
        low, high = number(first), number(last) if dash else number(first)
        if not isinstance(low, int) or not isinstance(high, int) or high < low:
            return None
        count += high - low + 1
    return count


def ids(data: bytes) -> frozenset[int] | None:
    """cgroup.procs: one process id a line; 0 (a process of an outer pid namespace) is left out."""
    if data and not data.endswith(b"\n"):
        data = data[: data.rfind(b"\n") + 1]
    tokens = data.split()
    if tokens and not b"".join(tokens).isdigit():
        return None
    return frozenset(int(token) for token in tokens if len(token) <= 10) - {0}


class Columns(NamedTuple, Generic[T]):
    """What a file gave: ``values[i]`` is the number of ``wanted[i]``.

    ``wanted`` is the same tuple object each time the same keys are found.
    """

    wanted: tuple[T, ...]
    values: list[int | float]


class _Layout(Generic[T]):
    """Where a known file's keys and wanted values stand among its tokens."""

    __slots__ = ("get_keys", "get_values", "keys", "wanted")

    def __init__(self, keys: dict[int, bytes], values: dict[int, T]) -> None:
        self.get_keys = _tuple_getter(tuple(keys))
        self.keys = tuple(keys.values())
        self.get_values = _tuple_getter(tuple(values))
        self.wanted = tuple(values.values())


def _tuple_getter(positions: tuple[int, ...]) -> Callable[[list[bytes]], tuple[bytes, ...]]:
    """An itemgetter that gives a tuple even of one item."""
    if len(positions) == 1:
        only = positions[0]
        return lambda tokens: (tokens[only],)
    return itemgetter(*positions)


class Keyed(Generic[T]):
    """The shared engine of keyed files: line by line the first time, then by remembered layout.

    A kernel prints the same keys in the same order each time. So the second time it is enough to
    check that every key stands where it stood and that every wanted value is a whole number; a file
    that does not fit goes line by line again.
    """

    def __init__(self) -> None:
        self._layouts: dict[tuple[int, bytes], _Layout[T]] = {}
        self._seen: dict[tuple[T, ...], tuple[T, ...]] = {}

    def columns(self, data: bytes) -> Columns[T]:
        """The wanted values of a file, in its order; a key without a readable value has none."""
        tokens = self._tokens(data)
        if tokens and data[-1] == _NEWLINE:
            layout = self._layouts.get((len(tokens), tokens[0]))
            if layout is not None and layout.get_keys(tokens) == layout.keys:
                values = layout.get_values(tokens)
                if b"".join(values).isdigit() and max(map(len, values)) <= _SAFE_DIGITS:
                    return Columns(layout.wanted, list(map(int, values)))
        return self._parse(data)

    def _tokens(self, data: bytes) -> list[bytes]:
        raise NotImplementedError

    def _fields(self, line: bytes) -> tuple[bytes, list[tuple[bytes, bytes]]] | None:
        """A line's tokens: what precedes the pairs (empty: nothing), and its pairs; None: malformed."""
        raise NotImplementedError

    def _wanted(self, outer: bytes, key: bytes) -> T | None:
        raise NotImplementedError

    def _parse(self, data: bytes) -> Columns[T]:
        found: list[T] = []
        values: list[int | float] = []
        keys: dict[int, bytes] = {}
        wanted_at: dict[int, T] = {}
        position = 0
        regular = True
        for line in data.split(b"\n")[:-1]:
            fields = self._fields(line)
            if fields is None:
                regular = False
                continue
            outer, pairs = fields
            if outer:
                keys[position] = outer
                position += 1
            for key, token in pairs:
                keys[position] = key
                if (wanted := self._wanted(outer, key)) is not None:
                    wanted_at[position + 1] = wanted
                    if (value := number(token)) is not None:
                        found.append(wanted)
                        values.append(value)
                position += 2
        if regular and wanted_at and len(self._layouts) < _MAX_LAYOUTS:
            self._layouts[position, keys[0]] = _Layout(keys, wanted_at)
        return Columns(self._interned(tuple(found)), values)

    def _interned(self, wanted: tuple[T, ...]) -> tuple[T, ...]:
        if len(self._seen) >= _MAX_LAYOUTS:
            self._seen.clear()
        return self._seen.setdefault(wanted, wanted)


class FlatKeyed(Keyed[T]):
    """``KEY VALUE`` lines: cpu.stat, memory.stat, memory.events, cgroup.stat."""

    def __init__(self, wanted: Callable[[bytes], T | None]) -> None:
        super().__init__()
        self._resolve = wanted

    def _tokens(self, data: bytes) -> list[bytes]:
        return data.split()

    def _fields(self, line: bytes) -> tuple[bytes, list[tuple[bytes, bytes]]] | None:
        tokens = line.split()
        return (b"", [(tokens[0], tokens[1])]) if len(tokens) == 2 else None

    def _wanted(self, outer: bytes, key: bytes) -> T | None:
        return self._resolve(key)


class NestedKeyed(Keyed[T]):
    """``KEY SUB=VALUE SUB=VALUE`` lines: pressure files, io.stat, memory.numa_stat, io.max, rdma.

    A key with nothing behind it (``8:0`` of a device without any io) is a line without values, not
    a line of zeros.
    """

    def __init__(self, wanted: Callable[[bytes, bytes], T | None]) -> None:
        super().__init__()
        self._resolve = wanted

    def _tokens(self, data: bytes) -> list[bytes]:
        return data.replace(b"=", b" ").split()

    def _fields(self, line: bytes) -> tuple[bytes, list[tuple[bytes, bytes]]] | None:
        tokens = line.split()
        if not tokens or b"=" in tokens[0]:
            return None
        pairs = []
        for token in tokens[1:]:
            sub, equals, value = token.partition(b"=")
            if not sub or not equals or not value or b"=" in value:
                return None
            pairs.append((sub, value))
        return tokens[0], pairs

    def _wanted(self, outer: bytes, key: bytes) -> T | None:
        return self._resolve(outer, key)
