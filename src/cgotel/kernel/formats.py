"""The formats of cgroup files, from bytes to numbers (admin-guide/cgroup-v2.rst, "Format").

Every parser here is total: whatever the bytes, it returns and raises nothing. A number comes out
only if it stood there whole: a last line without its newline may be cut in the middle of a digit
and is left out, as are `max`, negative, oversized and unreadable values, and keys that stand there
twice.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

import msgspec

T = TypeVar("T", bound=Hashable)

INT64_MAX = 2**63 - 1

_decode_numbers = msgspec.json.Decoder(list[int | float]).decode
_DECIMAL = re.compile(rb"\d{1,15}\.\d{1,6}")
_QUOTA_AND_PERIOD = re.compile(rb"(max|\d+) (\d+)\n")


def whole(token: bytes) -> int | None:
    """``b"42"`` as a number; None for `max`, a negative, one beyond 63 bits, or anything else."""
    if not token.isdigit() or len(token) > 19:
        return None
    value = int(token)
    return value if value <= INT64_MAX else None


def number(token: bytes) -> int | float | None:
    """As `whole`, and ``b"0.07"`` too."""
    return float(token) if _DECIMAL.fullmatch(token) else whole(token)


def single(data: bytes) -> int | None:
    """A single-value file such as memory.current; None for `max`, which is no limit."""
    return whole(data[:-1]) if data.endswith(b"\n") else None


def quota_and_period(data: bytes) -> tuple[int | None, int] | None:
    """cpu.max, ``$MAX $PERIOD`` in microseconds: (None, period) without a quota, None if unreadable."""
    fields = _QUOTA_AND_PERIOD.fullmatch(data)
    if fields is None:
        return None
    quota, period = whole(fields[1]), whole(fields[2])
    if not period or (quota is None and fields[1] != b"max"):
        return None
    return quota, period


def count_list(data: bytes) -> int | None:
    """How many ids a list such as cpuset.cpus.effective (``0-3,7``) names; None if unreadable."""
    if not data.endswith(b"\n"):
        return None
    if data == b"\n":
        return 0
    count, highest = 0, -1
    for part in data[:-1].split(b","):
        first, dash, last = part.partition(b"-")
        low, high = whole(first), whole(last if dash else first)
        if low is None or high is None or not highest < low <= high:
            return None
        count, highest = count + high - low + 1, high
    return count if count <= INT64_MAX else None


@dataclass(frozen=True, slots=True)
class Processes:
    """What cgroup.procs says: how many processes, and which.

    ``ids`` is None where some live in an outer pid namespace: they count, but have no id here.
    """

    count: int
    ids: frozenset[int] | None


def processes(data: bytes) -> Processes | None:
    """cgroup.procs, one process id a line (0: of an outer pid namespace); None if cut or unreadable.

    An id may stand there twice: "if the process got moved to another cgroup and then back or the
    PID got recycled while reading" (admin-guide/cgroup-v2.rst).
    """
    *lines, rest = data.split(b"\n")
    if rest or not all(map(bytes.isdigit, lines)) or max(map(len, lines), default=0) > 10:
        return None
    ids = list(map(int, lines))
    visible = frozenset(ids) - {0}
    hidden = ids.count(0)
    return Processes(len(visible) + hidden, None if hidden else visible)


class Columns(NamedTuple, Generic[T]):
    """What a file gave: ``values[i]`` is the number of ``wanted[i]``.

    ``wanted`` is the same tuple object each time the same keys are found.
    """

    wanted: tuple[T, ...]
    values: list[int | float]


def _numbers(tokens: Sequence[bytes]) -> list[int | float]:
    """All of them at once: JSON's decoder takes half the time, but no ``007``."""
    try:
        return _decode_numbers(b"[" + b",".join(tokens) + b"]")
    except msgspec.DecodeError:
        return [float(token) if b"." in token else int(token) for token in tokens]


class _Layout(NamedTuple, Generic[T]):
    """A file as a pattern: every byte of it literally, but any number where a number stood."""

    match: Callable[[bytes], re.Match[bytes] | None]
    wanted: tuple[T, ...]


class Keyed(Generic[T]):
    """The shared engine of keyed files: line by line at first, then by remembered layout.

    A kernel prints the same keys in the same order each time, so a file that was read line by line
    is made into a pattern, whose groups are the wanted values. What fits a pattern differs from its
    model in numbers only, and so cannot mean anything else; what fits none goes line by line again.

    Making a pattern costs as much as twenty to thirty readings, so only every 16th miss makes one: a
    file that never looks the same again (devices come and go) costs little more than without.
    """

    _PATTERNS = 32
    _MISSES_A_PATTERN = 16
    _LARGEST_PATTERN = 16384

    _value: bytes
    """What a value may be, as a pattern."""

    def __init__(self, decimals: bool) -> None:
        self._number = number if decimals else whole
        self._layouts: list[_Layout[T]] = []
        self._misses = 0
        self._known: dict[tuple[T, ...], tuple[T, ...]] = {}

    def columns(self, data: bytes) -> Columns[T]:
        """The wanted values of a file, in its order; a key without a readable value has none."""
        for layout in self._layouts:
            if (match := layout.match(data)) is not None:
                if layout is not self._layouts[0]:
                    self._layouts.remove(layout)
                    self._layouts.insert(0, layout)
                return Columns(layout.wanted, _numbers(match.groups()))
        self._misses += 1
        columns = self._parse(data)
        if self._misses % self._MISSES_A_PATTERN == 0 and len(data) <= self._LARGEST_PATTERN:
            self._layouts.insert(0, self._layout(data, columns))
            del self._layouts[self._PATTERNS :]
        return columns

    def _places(self, data: bytes) -> Iterator[tuple[T | None, int, int]]:
        """What each value is for (None: it is not wanted), and where it begins and ends."""
        raise NotImplementedError

    def _parse(self, data: bytes) -> Columns[T]:
        numbers: dict[T, int | float | None] = {}
        for wanted, start, end in self._places(data):
            if wanted is not None:
                numbers[wanted] = None if wanted in numbers else self._number(data[start:end])
        found = tuple([wanted for wanted, value in numbers.items() if value is not None])
        return Columns(self._same(found), [value for value in numbers.values() if value is not None])

    def _same(self, wanted: tuple[T, ...]) -> tuple[T, ...]:
        """The tuple that was returned for these the last time."""
        if len(self._known) >= 256:
            self._known.clear()
        return self._known.setdefault(wanted, wanted)

    def _layout(self, data: bytes, columns: Columns[T]) -> _Layout[T]:
        values = dict(zip(*columns, strict=True))
        pattern, at = b"", 0
        for wanted, start, end in self._places(data):
            if wanted is None:
                value = self._value
            elif wanted in values:
                value = rb"(\d{1,15}\.\d{1,6})" if isinstance(values[wanted], float) else rb"(\d{1,18})"
            else:  # `max`, or a key that stands there twice: once it differs, it may mean something
                continue
            pattern += re.escape(data[at:start]) + value
            at = end
        return _Layout(re.compile(pattern + re.escape(data[at:])).fullmatch, columns.wanted)


class FlatKeyed(Keyed[T]):
    """``KEY VALUE`` lines: cpu.stat, memory.stat, memory.events, cgroup.stat."""

    _LINE = re.compile(rb"^(\S+) +(\S+) *\n", re.MULTILINE)
    _value = rb"\S+"

    def __init__(self, wanted: Callable[[bytes], T | None], decimals: bool = False) -> None:
        super().__init__(decimals)
        self._wanted = wanted

    def _places(self, data: bytes) -> Iterator[tuple[T | None, int, int]]:
        for line in self._LINE.finditer(data):
            yield self._wanted(line[1]), line.start(2), line.end(2)


class NestedKeyed(Keyed[T]):
    """``KEY SUB=VALUE SUB=VALUE`` lines: pressure files, io.stat, memory.numa_stat, io.max, rdma.

    A key with nothing behind it (``8:0`` of a device without any io) has no values, and no zeros.
    Some 5.x kernels end no line there (``8:0 8:16 rbytes=4096``): the last key owns the values.
    """

    _LINE = re.compile(rb"^(?:[^\s=]+ +)*([^\s=]+)((?: +[^\s=]+=[^\s=]+)*) *\n", re.MULTILINE)
    _PAIR = re.compile(rb"([^\s=]+)=([^\s=]+)")
    _value = rb"[^\s=]+"

    def __init__(self, wanted: Callable[[bytes, bytes], T | None], decimals: bool = False) -> None:
        super().__init__(decimals)
        self._wanted = wanted

    def _places(self, data: bytes) -> Iterator[tuple[T | None, int, int]]:
        for line in self._LINE.finditer(data):
            outer = line[1]
            for pair in self._PAIR.finditer(data, line.start(2), line.end(2)):
                yield self._wanted(outer, pair[1]), pair.start(2), pair.end(2)


class Single(Keyed[T]):
    """A file of one whole number; `max`, which is no limit, gives none."""

    _value = rb"\S+"

    def __init__(self, wanted: T) -> None:
        super().__init__(decimals=False)
        self._wanted = wanted

    def _places(self, data: bytes) -> Iterator[tuple[T | None, int, int]]:
        if data.endswith(b"\n"):
            yield self._wanted, 0, len(data) - 1


class Joined(Keyed[T]):
    """Files that are read together, as one text: with a NUL between each two.

    No kernel prints a NUL. Where a file holds one, nobody can say which file a number is from, and
    there is none. The larger the text, the dearer is its pattern, so that fewer misses make one.
    """

    _MISSES_A_PATTERN = 128
    _value = rb"[^\s=\0]+"

    def __init__(self, files: Sequence[Keyed[T]]) -> None:
        super().__init__(decimals=False)
        self._files = files

    def _places(self, data: bytes) -> Iterator[tuple[T | None, int, int]]:
        texts = data.split(b"\0")
        if len(texts) != len(self._files):
            return
        at = 0
        for file, text in zip(self._files, texts, strict=True):
            for wanted, start, end in file._places(text):  # noqa: SLF001
                yield wanted, at + start, at + end
            at += len(text) + 1

    def _parse(self, data: bytes) -> Columns[T]:
        texts = data.split(b"\0")
        if len(texts) != len(self._files):
            return Columns((), [])
        each = [file.columns(text) for file, text in zip(self._files, texts, strict=True)]
        wanted = tuple([wanted for columns in each for wanted in columns.wanted])
        return Columns(self._same(wanted), [value for columns in each for value in columns.values])
