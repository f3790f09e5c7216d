"""One cgroup between two sweeps: its open files, and what has to be remembered of it."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Any, TypeAlias

from cgotel.collectors.cgroup.facts import OWN, USE, Use, picker
from cgotel.collectors.cgroup.limits import Own
from cgotel.collectors.rising import Rising
from cgotel.collectors.tables import NOTHING, FileTable, Parse
from cgotel.kernel.cgroupfs import CgroupDirectory
from cgotel.kernel.files import Descriptors, JoinedFiles, KernelFile
from cgotel.kernel.formats import Columns, Joined, processes
from cgotel.kernel.source import State
from cgotel.model import Entity, Number, Series

CgroupFile: TypeAlias = KernelFile[Columns[Series]]


class Tables:
    """What is read of a kind of cgroup, and a parser for each set of files that are there together."""

    def __init__(self, tables: Sequence[FileTable]) -> None:
        self.each = tables
        self._keyed = {table.file: table.keyed for table in tables if table.keyed is not None}
        self._joined: dict[tuple[str, ...], Joined[Series]] = {}

    def joined(self, files: tuple[str, ...]) -> Parse:
        """The parser of these files as one text."""
        if files not in self._joined:
            self._joined[files] = Joined([self._keyed[file] for file in files])
        return self._joined[files].columns


class Member:
    """A cgroup that is read: every file of its family's tables, opened below its own directory.

    Those that hold the same keys in every cgroup are read as one, the others one by one.
    """

    __slots__ = (
        "_apart",
        "_joined",
        "_parts",
        "_pick_own",
        "_pick_use",
        "_speaking",
        "cpu_time",
        "directory",
        "entity",
        "files",
        "minor_faults",
        "oom_kills",
        "own",
        "processes",
        "procs",
        "reading_parts",
        "reading_series",
        "reported",
        "series",
        "slow",
        "use",
    )

    def __init__(
        self,
        directory: CgroupDirectory,
        entity: Entity,
        reported: bool,
        tables: Tables,
        descriptors: Descriptors,
    ) -> None:
        self.directory = directory
        self.entity = entity
        self.reported = reported
        self.files: dict[str, CgroupFile] = {
            t.file: KernelFile(directory.fd, t.file, t.parse, NOTHING, descriptors) for t in tables.each
        }
        slow = {table.file for table in tables.each if table.slow}
        if directory.parent is None:
            slow.add("memory.stat")  # 3 to 8 s on large hosts: google/cadvisor#2259
        joined = {table.file for table in tables.each if table.keyed is not None} - slow
        self._joined = JoinedFiles(self._those(joined), tables.joined, NOTHING)
        self._apart = self._those(self.files.keys() - joined - slow)
        self.slow = self._those(slow)
        self.procs = KernelFile(directory.fd, "cgroup.procs", processes, None, descriptors, many=True)
        self.processes = ProcessSet()
        self.minor_faults = Rising()
        self.cpu_time: tuple[int, Number] | None = None
        self.oom_kills: Number | None = None
        self.reading_parts: tuple[tuple[Series, ...], tuple[Series, ...]] = ((), ())
        self.reading_series: tuple[Series, ...] = ()
        self.own = Own()
        self.use = Use()
        self._rearrange(())
        self.retry()

    def read(self, slow_beat: bool) -> list[Number]:
        """All numbers of this instant, in the order of ``series``; the slow files' when it is time.

        Sets what this cgroup's own files say of its limits (``own``) and of its ``use``.
        """
        columns = [self._joined.read()]
        columns += [file.read() for file in self._speaking]
        columns += [file.read() if slow_beat else file.last for file in self.slow]
        parts = tuple([column.wanted for column in columns])
        if parts != self._parts:
            self._rearrange(parts)
        values: list[Number] = []
        for column in columns:
            values += column.values
        row = [*values, None]
        self.own = Own._make(self._pick_own(row))
        self.use = Use._make(self._pick_use(row))
        return values

    def _rearrange(self, parts: tuple[tuple[Series, ...], ...]) -> None:
        """Other series than before are there."""
        self._parts = parts
        self.series = tuple([series for part in parts for series in part])
        self._pick_own = picker(self.series, OWN)
        self._pick_use = picker(self.series, USE)
        self._speaking = [file for file in self._apart if file.state is State.OK]

    @property
    def gone(self) -> bool:
        """Whether the cgroup was removed under our hands: cpu.stat is there as long as it is."""
        return self.files["cpu.stat"].state is State.GONE

    @property
    def sources(self) -> tuple[KernelFile[Any], ...]:
        """Every file that is read of this cgroup."""
        return (*self.files.values(), self.procs) if self.reported else tuple(self.files.values())

    def retry(self) -> None:
        """Look again for files that were silent: a controller may have been enabled since."""
        there = self.directory.names()
        for file in self.sources:
            if there is None or file.name in there:
                file.retry()
            elif file.fd < 0:
                file.absent()
        self._joined.retry()
        self._speaking = self._apart

    def close(self) -> None:
        """Give the descriptors back."""
        for file in self.sources:
            file.close()

    def _those(self, names: AbstractSet[str]) -> list[CgroupFile]:
        return [file for name, file in self.files.items() if name in names]


class ProcessSet:
    """Counts processes that came and went; both are lower bounds.

    Who is there at the first look has come since the cgroup began; who lived between two looks is
    never seen.
    """

    __slots__ = ("_known", "exits", "starts")

    def __init__(self) -> None:
        self._known: frozenset[int] = frozenset()
        self.starts = 0
        self.exits = 0

    def update(self, now: frozenset[int]) -> None:
        """Compare with the sweep before."""
        if now is not self._known:
            self.starts += len(now - self._known)
            self.exits += len(self._known - now)
        self._known = now
