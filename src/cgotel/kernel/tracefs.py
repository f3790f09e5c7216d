"""An instance of the kernel's tracing of our own: made, read, removed (trace/ftrace.rst, "Instances").

An instance has its own buffer and its own events, so that whoever else traces this host is not
disturbed. It outlives its maker; its name therefore tells who made it, and the next one to start
removes what the dead have left: ``cgotel-PIDNAMESPACE-PID-BEGAN-NUMBER``.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from cgotel.kernel import tasks
from cgotel.kernel.files import read_once
from cgotel.kernel.trace_text import Lost, Record, Shape, Unread, records

_NAME = re.compile(r"cgotel-(\d+)-(\d+)-(\d+)-\d+")
_numbers = itertools.count()  # of the instances of this process
_OWN_PROC = "/proc"  # of the namespace in which getpid() counts, wherever the host's is mounted
_READ_BYTES = 1 << 16  # more than the kernel gives at once, so that every read ends with a whole line


def mounted(sys: str) -> str | None:
    """Where tracefs is: at its own place, or below debugfs as before 4.1; None if it is not mounted."""
    for place in (f"{sys}/kernel/tracing", f"{sys}/kernel/debug/tracing"):
        if os.path.exists(f"{place}/trace_pipe"):
            return place
    return None


class TraceInstance:
    """Some events, each with its filter, as records. Raises OSError where tracing is not permitted.

    Raises `ValueError` for an event whose format cannot be followed.
    """

    def __init__(self, tracing: str, events: Mapping[str, str | None], kib_per_cpu: int) -> None:
        """``events`` by ``system/name``, each with its filter; the buffer takes memory for each CPU."""
        remove_dead(tracing)
        self._pipe = -1
        self._path = f"{tracing}/instances/{_own_name()}"
        self._events = tuple(events)
        shapes = {
            name.partition("/")[2]: Shape(
                read_once(f"{tracing}/events/{name}/format").decode("utf-8", "replace")
            )
            for name in events
        }
        self._shapes: Mapping[str, Shape] = shapes
        os.mkdir(self._path, 0o700)
        try:
            # While it is open, nobody can remove the instance: rmdir(2) gives EBUSY.
            self._pipe = os.open(f"{self._path}/trace_pipe", os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
            self._write("buffer_size_kb", str(kib_per_cpu))
            with contextlib.suppress(FileNotFoundError):  # before 5.0 a reader is woken by the first event
                self._write("buffer_percent", "0")
            self._write("trace_clock", "boot")
            for name, condition in events.items():
                if condition is not None:
                    self._write(f"events/{name}/filter", condition)
                self._write(f"events/{name}/enable", "1")
        except BaseException:
            self.close()
            raise

    def fileno(self) -> int:
        """Readable when there is an event: for poll(2)."""
        return self._pipe

    def read(self) -> Iterator[Record | Lost | Unread]:
        """What happened, in the order of the trace clock, which is CLOCK_BOOTTIME; at most 64 KiB of it.

        Raises EOFError where somebody switched this instance off.
        """
        try:
            data = os.read(self._pipe, _READ_BYTES)
        except BlockingIOError:
            return iter(())
        if not data:
            raise EOFError("tracing was switched off from outside")
        return records(data, self._shapes)

    def skip(self) -> None:
        """Forget what was not read yet."""
        os.close(os.open(f"{self._path}/trace", os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC))

    def close(self) -> None:
        """Remove the instance. May be called twice."""
        if self._path:
            for name in self._events:
                with contextlib.suppress(OSError):
                    self._write(f"events/{name}/enable", "0")
        if self._pipe >= 0:
            os.close(self._pipe)
            self._pipe = -1
        if self._path:
            with contextlib.suppress(OSError):  # somebody reads it: whoever starts next removes it
                Path(self._path).rmdir()
            self._path = ""

    def _write(self, name: str, content: str) -> None:
        fd = os.open(f"{self._path}/{name}", os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(fd, content.encode())
        finally:
            os.close(fd)


def remove_dead(tracing: str) -> None:
    """Remove the instances whose makers are dead.

    A maker in another pid namespace cannot be looked up; the instance of a living one is busy, and
    stays for that reason alone.
    """
    with contextlib.suppress(OSError):
        for name in os.listdir(f"{tracing}/instances"):
            if (owner := _NAME.fullmatch(name)) and not _lives(*map(int, owner.groups())):
                with contextlib.suppress(OSError):
                    Path(tracing, "instances", name).rmdir()


def _shape(file: str) -> Shape:
    try:
        return Shape(read_once(file).decode("ascii", "replace"))
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from error


def _own_name() -> str:
    pid = os.getpid()
    began_ns = tasks.began_ns(_OWN_PROC, pid) or 0
    return f"cgotel-{tasks.namespace(_OWN_PROC)}-{pid}-{began_ns}-{next(_numbers)}"


def _lives(namespace: int, pid: int, began_ns: int) -> bool:
    return namespace == tasks.namespace(_OWN_PROC) and began_ns == tasks.began_ns(_OWN_PROC, pid)
