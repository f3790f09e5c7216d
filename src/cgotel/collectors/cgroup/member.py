"""One cgroup between two sweeps: its open files, and what has to be remembered of it."""

from __future__ import annotations

from typing import Any, TypeAlias

from cgotel.collectors.cgroup.limits import Own
from cgotel.collectors.rising import Rising
from cgotel.collectors.tables import NOTHING, FileTable
from cgotel.kernel.cgroupfs import CgroupDirectory
from cgotel.kernel.files import Descriptors, KernelFile
from cgotel.kernel.formats import Columns, processes
from cgotel.kernel.source import State
from cgotel.model import Entity, Number, Series

CgroupFile: TypeAlias = KernelFile[Columns[Series]]


class Member:
    """A cgroup that is read: every file of its family's tables, opened below its own directory."""

    __slots__ = (
        "_parts",
        "cpu_time",
        "directory",
        "entity",
        "fast",
        "files",
        "minor_faults",
        "processes",
        "procs",
        "reading_series",
        "reported",
        "series",
        "slow",
    )

    def __init__(
        self,
        directory: CgroupDirectory,
        entity: Entity,
        reported: bool,
        tables: list[FileTable],
        descriptors: Descriptors,
    ) -> None:
        self.directory = directory
        self.entity = entity
        self.reported = reported
        self.files: dict[str, CgroupFile] = {
            t.file: KernelFile(directory.fd, t.file, t.parse, NOTHING, descriptors) for t in tables
        }
        slow = {table.file for table in tables if table.slow}
        if directory.parent is None:
            slow.add("memory.stat")  # 3 to 8 s on large hosts: google/cadvisor#2259
        self.fast = [file for name, file in self.files.items() if name not in slow]
        self.slow = [file for name, file in self.files.items() if name in slow]
        self.procs = KernelFile(directory.fd, "cgroup.procs", processes, None, descriptors, many=True)
        self.processes = ProcessSet()
        self.minor_faults = Rising()
        self.cpu_time: tuple[int, Number] | None = None
        self.series: tuple[Series, ...] = ()
        self.reading_series: tuple[Series, ...] = ()
        self._parts: tuple[tuple[Series, ...], ...] = ()
        self.retry()

    def read(self, slow_beat: bool) -> list[Number]:
        """All numbers of this instant, in the order of ``series``; the slow files' when it is time."""
        columns = [file.read() for file in self.fast]
        if self.slow:
            columns += [file.read() if slow_beat else file.last for file in self.slow]
        parts = tuple([column.wanted for column in columns])
        if parts != self._parts:
            self._parts = parts
            self.series = tuple([series for part in parts for series in part])
        values: list[Number] = []
        for column in columns:
            values += column.values
        return values

    def number(self, file: str) -> Number | None:
        """The only number of a single-value file as last read."""
        known = self.files.get(file)
        return known.last.values[0] if known is not None and known.last.values else None

    def own(self) -> Own:
        """What this cgroup's own files say of its limits and their use, as last read."""
        return Own(
            self._whole("memory.current"),
            self._whole("memory.max"),
            self._whole("memory.high"),
            self._whole("memory.swap.max"),
            self.own_quota,
            self._whole("cpuset.cpus.effective"),
            self._whole("pids.current"),
            self._whole("pids.max"),
        )

    @property
    def own_quota(self) -> float | None:
        """The cgroup's own CPU quota in CPUs; cpu.max gives its period alone without one."""
        file = self.files.get("cpu.max")
        return file.last.values[0] if file is not None and len(file.last.values) == 2 else None

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

    def close(self) -> None:
        """Give the descriptors back."""
        for file in self.sources:
            file.close()

    def _whole(self, file: str) -> int | None:
        value = self.number(file)
        return value if isinstance(value, int) else None


class ProcessSet:
    """Counts processes that came and went between sweeps: who lived in between is not seen."""

    __slots__ = ("_known", "exits", "starts")

    def __init__(self) -> None:
        self._known: frozenset[int] | None = None
        self.starts = 0
        self.exits = 0

    def update(self, now: frozenset[int]) -> None:
        """Compare with the sweep before; the first one only sets the ground."""
        if self._known is not None and now != self._known:
            self.starts += len(now - self._known)
            self.exits += len(self._known - now)
        self._known = now
