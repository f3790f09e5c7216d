"""The memory controller's files (admin-guide/cgroup-v2.rst, "Memory"); everything in bytes.

    memory.stat     anon 1024000            memory.events   low 0
                    file 503808                             high 12
                    ...                                     max 3
                                                            oom 1
                                                            oom_kill 1

memory.stat is flushed every two seconds or past a threshold, so it may lag memory.current.
memory.events counts the whole subtree, memory.events.local this cgroup alone. `oom` counts where
the limit was hit, `oom_kill` where the victim lived.
"""

from __future__ import annotations

import re

from cgotel.collectors.cgroup import memory_stat
from cgotel.collectors.cgroup.tables import Family
from cgotel.collectors.tables import FileTable, keys, pairs, rows, value
from cgotel.model import AttributeValue, Series

_EVENTS = "low high max oom oom_kill oom_group_kill sock_throttled"

_NODE = re.compile(r"N([0-9]{1,5})")


def tables(family: Family) -> list[FileTable]:
    """What is read for a cgroup of this family."""
    return [
        *_sizes(family),
        memory_stat.table(family),
        _events(family, "memory.events", "memory.events", "in the subtree"),
        _events(family, "memory.events.local", "memory.local_events", "of this cgroup itself"),
        _swap_events(family),
        _numa(family),
    ]


def _sizes(family: Family) -> list[FileTable]:
    amounts = {
        "memory.current": ("memory.usage", "Memory charged to the cgroup, page cache included"),
        "memory.max": ("memory.limit", "Hard limit; absent without one"),
        "memory.swap.current": ("paging.usage", "Swap in use"),
        "memory.swap.max": ("paging.limit", "Hard limit of swap; absent without one"),
        "memory.zswap.current": ("zswap.usage", "zswap memory in use"),
        "memory.zswap.max": ("zswap.limit", "Hard limit of zswap; absent without one"),
    }
    marks = {
        "memory.peak": ("memory.peak", "Largest usage since the cgroup was made"),
        "memory.high": (
            "memory.high",
            "Above this, reclaim throttles the cgroup; absent without one",
        ),
        "memory.low": ("memory.low", "Memory protected from reclaim as long as others have some"),
        "memory.min": ("memory.min", "Memory protected from reclaim always"),
        "memory.swap.high": (
            "paging.high",
            "Above this, swapping throttles the cgroup; absent without one",
        ),
        "memory.swap.peak": ("paging.peak", "Largest swap usage since the cgroup was made"),
    }
    return [value(file, family.updown(name, "By", text)) for file, (name, text) in amounts.items()] + [
        value(file, family.gauge(name, "By", text)) for file, (name, text) in marks.items()
    ]


def _events(family: Family, file: str, name: str, where: str) -> FileTable:
    instrument = family.counter(name, "{event}", f"Times that a memory boundary acted {where}")
    return keys(file, rows(file, instrument, "cgroup.memory.event", _EVENTS))


def _swap_events(family: Family) -> FileTable:
    file = "memory.swap.events"
    instrument = family.counter("paging.events", "{event}", "Times that a swap boundary acted")
    return keys(file, rows(file, instrument, "cgroup.paging.event", "high max fail"))


def _numa(family: Family) -> FileTable:
    instrument = family.updown(
        "memory.numa.usage",
        "By",
        "Memory by what it holds and on which NUMA node, as of up to slow_interval ago",
    )

    def make(kind: str, node: str) -> Series | None:
        number = _NODE.fullmatch(node)
        if kind not in ("anon", "file") or number is None:
            return None
        attributes: dict[str, AttributeValue] = {
            "cgroup.memory.type": kind,
            "cgroup.numa.node": int(number[1]),
        }
        return instrument.series(f"memory.numa_stat.{kind}.{node}", attributes=attributes)

    return pairs("memory.numa_stat", make, slow=True)
