"""Kernel files of a directory, read together, and the one reading that they make."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, TypeAlias

from cgotel.collectors.tables import NOTHING, FileTable
from cgotel.contract import SourceStatus, State, Tick
from cgotel.kernel.files import Descriptors, KernelFile
from cgotel.kernel.formats import Columns
from cgotel.model import Number, Series

AT_FDCWD = -100  # linux/fcntl.h: names are absolute, or taken from the working directory

_DENIED = "run as root, or give the agent's user read access"


class Silence(NamedTuple):
    """Why a source is absent, and what to do about it.

    ``empty``: the same where the file is there and holds no number.
    """

    reason: str
    remedy: str = ""
    empty: bool = False

    def status(self, name: str, state: State = State.ABSENT) -> SourceStatus:
        """The status of a source that is silent for this reason."""
        return SourceStatus(name, state, self.reason, self.remedy)


_NO_SUCH_FILE = Silence("this kernel has no such file")

Silences: TypeAlias = Mapping[str, Silence]


class Files:
    """The files of one directory, each optional."""

    def __init__(
        self,
        directory: str,
        tables: Iterable[FileTable],
        descriptors: Descriptors,
        silences: Silences,
        prefix: str = "",
    ) -> None:
        self._silences = silences
        self._prefix = prefix
        self._files = {
            table.file: KernelFile(
                AT_FDCWD, f"{directory}/{table.file}", table.parse, NOTHING, descriptors, table.many
            )
            for table in tables
        }

    def read(self) -> list[Columns[Series]]:
        """What each file says now."""
        return [file.read() for file in self._files.values()]

    def last(self, name: str) -> Columns[Series]:
        """What a file said when it was read last."""
        return self._files[name].last

    def retry(self) -> None:
        """Ask again for files that were silent."""
        for file in self._files.values():
            file.retry()

    def statuses(self) -> Iterator[SourceStatus]:
        """One status for each file."""
        for name, file in self._files.items():
            yield self._status(name, file.state, bool(file.last.values))

    def close(self) -> None:
        """Give the descriptors back."""
        for file in self._files.values():
            file.close()

    def _status(self, name: str, state: State, numbers: bool) -> SourceStatus:
        shown = self._prefix + name
        if state is State.OK and numbers:
            return SourceStatus(shown, state)
        silence = self._silences.get(name, _NO_SUCH_FILE)
        if state in (State.ABSENT, State.OFF):
            return silence.status(shown, state)
        if state is State.OK and silence.empty:
            return silence.status(shown)
        if state is State.OK:
            return SourceStatus(shown, State.FAILED, "no number in it can be read")
        return unreadable(shown, self._files[name].name, state)


def unreadable(name: str, path: str, state: State) -> SourceStatus:
    """The status of a source whose file is there and cannot be read."""
    return SourceStatus(name, state, f"{path} cannot be read", _DENIED if state is State.DENIED else "")


class Beat:
    """Comes due now and then: for what seldom changes, and for files that were silent."""

    def __init__(self, seconds: int = 60) -> None:
        self._length_ns = seconds * 10**9
        self._at_ns = 0

    def due(self, tick: Tick) -> bool:
        """Whether it is time again; true the first time."""
        if tick.monotonic_ns < self._at_ns:
            return False
        self._at_ns = tick.monotonic_ns + self._length_ns
        return True


class Row:
    """Joins files' columns to one row of numbers.

    ``series`` says what each number is: the very same tuple as long as it holds the same series.
    """

    def __init__(self) -> None:
        self.series: tuple[Series, ...] = ()
        self._parts: tuple[tuple[Series, ...], ...] = ()

    def join(self, columns: Iterable[Columns[Series]]) -> list[Number]:
        """All numbers, in the order of ``series``."""
        columns = list(columns)
        parts = tuple([column.wanted for column in columns])
        if parts != self._parts:
            self._parts = parts
            self.series = tuple([series for part in parts for series in part])
        return [value for column in columns for value in column.values]
