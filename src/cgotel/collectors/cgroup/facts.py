"""The few numbers of a cgroup that others are made of, found in a row of many."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import NamedTuple, TypeAlias

from cgotel.model import Number, Series

Pick: TypeAlias = Callable[[Sequence[Number | None]], tuple[Number | None, ...]]

OWN = (
    "memory.current",
    "memory.max",
    "memory.high",
    "memory.swap.max",
    "cpu.max.limit",
    "cpuset.cpus.effective_count",
    "pids.current",
    "pids.max",
)
"""Where the fields of `Own` stand, in their order."""

USE = (
    "cpu.stat.user_usec",
    "cpu.stat.system_usec",
    "cpu.stat.throttled_usec",
    "memory.stat.inactive_file",
    "memory.stat.anon",
    "memory.stat.pgfault",
    "memory.stat.pgmajfault",
    "memory.events.local.oom_kill",
)
"""Where the fields of `Use` stand, in their order."""


class Use(NamedTuple):
    """What a cgroup's own files say of its use: microseconds, bytes and counts; None: not measured."""

    user_usec: Number | None = None
    system_usec: Number | None = None
    throttled_usec: Number | None = None
    inactive_file: Number | None = None
    anon: Number | None = None
    faults: Number | None = None
    major_faults: Number | None = None
    oom_kills: Number | None = None


def picker(series: Sequence[Series], sources: Sequence[str]) -> Pick:
    """Finds the numbers of at least two sources in a row of these series that has a None at its end."""
    places = {one.source: place for place, one in enumerate(series)}
    return itemgetter(*[places.get(source, -1) for source in sources])
