"""Processes and threads: made, there, ended."""

import subprocess
import threading
from collections.abc import Iterable
from pathlib import Path

from tests.unit.collectors.host import machine

from cgotel.collectors.host.tasks import Tasks
from cgotel.collectors.instruments import Instruments
from cgotel.model import Entity, Reading


def read(tasks: Tasks, stat: bytes, loadavg: bytes) -> Reading:
    contents = {"stat": stat, "loadavg": loadavg}
    columns = [table.parse(contents[table.file]) for table in tasks.tables]
    columns.append(tasks.ended(columns))
    points = [point for column in columns for point in zip(*column, strict=True)]
    return Reading.of(Entity("host", "h"), 0, points)


def ended(tasks: Tasks, stat: bytes, loadavg: bytes) -> float | None:
    return read(tasks, stat, loadavg).metric("system.process.linux.thread.exits")


def test_stat_and_loadavg() -> None:
    reading = read(Tasks(Instruments()), machine.STAT.encode(), machine.LOADAVG.encode())
    assert reading.metric("system.process.created") == 51670
    assert reading.metric("system.process.count", process_state="running") == 9
    assert reading.metric("system.process.count", process_state="uninterruptible") == 2
    assert reading.metric("system.process.linux.thread.count") == 133
    assert reading.metric("system.process.linux.thread.exits") == 51670 - 133
    averages = [reading.metric(f"system.cpu.load_average.{window}") for window in ("1m", "5m", "15m")]
    assert averages == [3.14, 1.04, 0.48]


def test_exits_are_unknown_without_either_file() -> None:
    assert ended(Tasks(Instruments()), machine.STAT.encode(), b"") is None
    assert ended(Tasks(Instruments()), b"", machine.LOADAVG.encode()) is None


def test_more_threads_than_were_ever_made_tell_nothing() -> None:
    """A /proc that someone else fills may count one for the host and the other for a container."""
    assert ended(Tasks(Instruments()), b"processes 5\n", machine.LOADAVG.encode()) is None


def test_exits_never_fall() -> None:
    """A thread that is made between the two reads is there before it was counted."""
    tasks = Tasks(Instruments())
    load = "0.00 0.00 0.00 1/{} 7\n"
    values = [
        ended(tasks, f"processes {made}\n".encode(), load.format(there).encode())
        for made, there in ((200, 100), (200, 101), (204, 102))
    ]
    assert values == [100, 100, 102]


def test_this_machine_counts_what_ends_here() -> None:
    tasks = Tasks(Instruments())

    def now() -> Iterable[float | None]:
        reading = read(tasks, Path("/proc/stat").read_bytes(), Path("/proc/loadavg").read_bytes())
        return [reading.metric(f"system.process.{name}") for name in ("created", "linux.thread.exits")]

    created, exits = now()
    for _ in range(20):
        subprocess.run(["/bin/true"], check=True)
        thread = threading.Thread(target=lambda: None)
        thread.start()
        thread.join()
    created_since, exits_since = now()
    assert created is not None
    assert exits is not None
    assert created_since >= created + 40
    assert exits_since >= exits + 20, "processes are reaped by then; a thread may still be on its way out"
