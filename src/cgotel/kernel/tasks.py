"""One task in /proc, asked while it lives or waits to be reaped (filesystems/proc.rst, proc(5)).

Nothing raises: what is gone, or may not be read, is None or empty. A pid that was given to another
task since then answers for that one; who asks soon enough after an event need not fear it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import NamedTuple

from cgotel.kernel.files import read_once

_TICK_NS = 10**9 // os.sysconf("SC_CLK_TCK")
_THREADS, _BEGAN = 17, 19  # fields of /proc/PID/stat, counted from the state
_FIRST_NAMESPACE = 0xEFFFFFFC  # include/linux/proc_ns.h, PROC_PID_INIT_INO
_UNIFIED = re.compile(rb"^0::(/.*)\n", re.MULTILINE)
_OF_STATUS = re.compile(rb"^(Tgid|PPid):\t(\d{1,10})\n", re.MULTILINE)


class Ids(NamedTuple):
    """The process that a task is a thread of, and that process's parent."""

    process: int
    parent: int


def ids(proc: str, pid: int) -> Ids | None:
    """From /proc/PID/status, which answers for the id of a thread too."""
    found = {key: int(number) for key, number in _OF_STATUS.findall(_read(f"{proc}/{pid}/status"))}
    return Ids(found[b"Tgid"], found[b"PPid"]) if len(found) == 2 else None


def cgroup(proc: str, pid: int) -> str | None:
    """The cgroup (v2), from the root of the reader's cgroup namespace; None where it lies outside.

    A task that has ended is still in its cgroup until it is reaped, even where that was removed
    (kernel/cgroup/cgroup.c, proc_cgroup_show).
    """
    found = _UNIFIED.search(_read(f"{proc}/{pid}/cgroup"))
    if found is None or found[1].startswith(b"/.."):
        return None
    return text(found[1].removesuffix(b" (deleted)"))


def comm(proc: str, pid: int) -> str:
    """The name of a task, at most 15 bytes of whatever it chose."""
    return text(_read(f"{proc}/{pid}/comm")[:-1])


class Condition(NamedTuple):
    """Whether a task has ended, and how many threads its process has, itself included."""

    ended: bool
    threads: int


def condition(proc: str, pid: int) -> Condition | None:
    """Of /proc/PID/stat; None where nothing is left of it."""
    fields = _fields(proc, pid)
    return Condition(fields[0] in (b"Z", b"X"), int(fields[_THREADS])) if fields else None


def began_ns(proc: str, pid: int) -> int | None:
    """When a task began, in nanoseconds of CLOCK_BOOTTIME, exact to a tick of 10 ms."""
    fields = _fields(proc, pid)
    return int(fields[_BEGAN]) * _TICK_NS if fields else None


def processes(proc: str) -> Iterator[int]:
    """The ids of all processes that are there now."""
    try:
        names = os.listdir(proc)
    except OSError:
        return
    yield from (int(name) for name in names if name.isdecimal())


def namespace(proc: str, pid: int | None = None) -> int | None:
    """The pid namespace of a process, or of the reader, as the number of its inode."""
    try:
        return os.stat(f"{proc}/{pid or 'self'}/ns/pid").st_ino
    except OSError:
        return None


def counts_as_host(proc: str) -> bool:
    """Whether ids there are those that the kernel uses: /proc of the first pid namespace.

    Where that may not be looked at it is taken for granted.
    """
    return namespace(proc, 1) in (_FIRST_NAMESPACE, None)


def text(name: bytes) -> str:
    """Valid text, whatever the bytes."""
    return name.decode("utf-8", "backslashreplace")


def _fields(proc: str, pid: int) -> list[bytes]:
    """/proc/PID/stat from the state on, since the name before it may hold anything."""
    fields = _read(f"{proc}/{pid}/stat").rpartition(b")")[2].split()
    return fields if len(fields) > _BEGAN else []


def _read(file: str) -> bytes:
    try:
        return read_once(file)
    except OSError:
        return b""
