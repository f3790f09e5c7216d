"""What /proc tells of a container's main process, asked while it lives."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from cgotel.kernel.files import read_once
from cgotel.kernel.roots import Roots

_UNIFIED = re.compile(rb"^0::(/.*)$", re.MULTILINE)
_TICKS = os.sysconf("SC_CLK_TCK")
TICK_NS = 10**9 // _TICKS
"""How exactly the start of a process is known."""


@dataclass(frozen=True, slots=True)
class Process:
    """A living process: its cgroup (v2), its parent, and when it began, of CLOCK_BOOTTIME."""

    cgroup: str | None
    parent: int
    began_boottime_ns: int


def process(pid: int, roots: Roots) -> Process | None:
    """What is told of a process, None where it is gone (proc_pid_stat(5), proc_pid_cgroup(5))."""
    try:
        fields = read_once(f"{roots.proc}/{pid}/stat").rpartition(b")")[2].split()
        return Process(cgroup_of(pid, roots), int(fields[1]), int(fields[19]) * TICK_NS)
    except (OSError, IndexError, ValueError):
        return None


def cgroup_of(pid: int, roots: Roots) -> str | None:
    """The cgroup (v2) of a process, None where it is gone or has left it in its death."""
    try:
        found = _UNIFIED.search(read_once(f"{roots.proc}/{pid}/cgroup"))
    except OSError:
        return None
    return os.fsdecode(found[1]).removesuffix(" (deleted)") if found else None
