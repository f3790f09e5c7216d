"""Processes and threads of the host: /proc/stat, /proc/loadavg (proc(5)).

    processes 51670                     3.14 1.04 0.48 8/133 19202
    procs_running 9
    procs_blocked 0

`processes` counts every process and every thread that was ever made (kernel/fork.c, total_forks);
nobody counts those that ended. But loadavg says how many there are now (8/133: nr_threads), and what
was made and is not there has ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cgotel.collectors.instruments import Instruments, linux
from cgotel.collectors.rising import Rising
from cgotel.collectors.tables import NOTHING, FileTable, computed
from cgotel.kernel import procfs
from cgotel.kernel.formats import Columns, FlatKeyed
from cgotel.model import Number, Point, Series

_STATE = "process.state"


class Tasks:
    """What is read of the host's processes and threads, and what follows from it."""

    def __init__(self, make: Instruments) -> None:
        created = make.counter("system.process.created", "{process}", "Processes and threads made since boot")
        present = make.updown(
            linux("process", "thread.count"), "{thread}", "Threads of all processes and of the kernel"
        )
        ended = make.counter(
            linux("process", "thread.exits"), "{thread}", "Processes and threads that ended since boot"
        )
        self._created = created.series("stat.processes")
        self._present = present.series("loadavg.threads")
        self._ended = (ended.series("stat.exits"),)
        self._rising = Rising()
        self.tables = [self._stat(make), self._loadavg(make)]

    def ended(self, columns: Iterable[Columns[Series]]) -> Columns[Series]:
        """Processes and threads that ended, from what the tables gave in this sweep."""
        created, present = None, None
        for column in columns:
            created = _number(column, self._created, created)
            present = _number(column, self._present, present)
        if created is None or present is None or created < present:
            return NOTHING
        return Columns(self._ended, [self._rising.of(created - present)])

    def _stat(self, make: Instruments) -> FileTable:
        count = make.updown("system.process.count", "{process}", "Threads that run, or wait for a device")
        table = {
            b"processes": self._created,
            b"procs_running": count.series("stat.procs_running", attributes={_STATE: "running"}),
            b"procs_blocked": count.series("stat.procs_blocked", attributes={_STATE: "uninterruptible"}),
        }
        columns = FlatKeyed(table.get).columns
        return FileTable("stat", lambda data: columns(procfs.without_interrupts(data)))

    def _loadavg(self, make: Instruments) -> FileTable:
        averages = [
            make.gauge(
                f"system.cpu.load_average.{window}",
                "{thread}",
                f"Threads running or waiting for a device, averaged over {window}",
                "double",
            ).series(f"loadavg.{window}")
            for window in ("1m", "5m", "15m")
        ]

        def points(data: bytes) -> Iterator[Point]:
            load = procfs.load(data)
            if load is not None:
                yield from zip(averages, load.averages, strict=True)
                yield self._present, load.threads

        return computed("loadavg", points)


def _number(column: Columns[Series], series: Series, default: Number | None) -> Number | None:
    return column.values[column.wanted.index(series)] if series in column.wanted else default
