"""What the memory manager counts since boot: /proc/vmstat (mm/vmstat.c, vmstat_text).

    pgfault 13772708
    pgmajfault 2610
    oom_kill 0

Most of its two hundred keys matter to few: they are reported only where they are asked for by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cgotel.collectors.files import Silence
from cgotel.collectors.instruments import Instruments, linux
from cgotel.collectors.rising import Rising
from cgotel.collectors.tables import FileTable, computed, rows
from cgotel.kernel.formats import FlatKeyed
from cgotel.model import Point, Series

UNKNOWN = Silence("this kernel counts no such event", "a name from /proc/vmstat")

_FAULT_TYPE = "system.paging.fault.type"
_ZONES = ("dma", "dma32", "normal", "high", "movable", "device")

_REPORTED = frozenset(
    ("compact_fail", "compact_success", "oom_kill", "pgfault", "pgmajfault", "pswpin", "pswpout")
) | {f"allocstall_{zone}" for zone in _ZONES}

# Counters among the nr_ keys, and an amount that is none of them.
_COUNTERS = frozenset(
    (
        "nr_dirtied",
        "nr_foll_pin_acquired",
        "nr_foll_pin_released",
        "nr_throttled_written",
        "nr_vmscan_immediate_reclaim",
        "nr_vmscan_write",
        "nr_written",
    )
)
_AMOUNT = "workingset_nodes"


def refusal(event: str) -> str | None:
    """Why a key of /proc/vmstat cannot be asked for as an event; None if it can."""
    if event in _REPORTED:
        return "is reported already, under a name of its own"
    if event == _AMOUNT or (event.startswith("nr_") and event not in _COUNTERS):
        return "is an amount, not a count of events"
    return None


def event_series(make: Instruments, events: Iterable[str]) -> dict[str, Series]:
    """The series of the events that were asked for."""
    instrument = make.counter(
        linux("memory", "vm.events"), "{event}", "Events of the memory manager, by its own names"
    )
    attribute = linux("memory", "vm.event")
    return {event: instrument.series(f"vmstat.{event}", attributes={attribute: event}) for event in events}


def table(make: Instruments, events: dict[str, Series]) -> FileTable:
    """The keys that are always reported, and the events that were asked for."""
    faults = make.counter("system.paging.faults", "{fault}", "Page faults; major ones had to wait for a disk")
    minor, major = (
        faults.series("vmstat.pgminfault", attributes={_FAULT_TYPE: "minor"}),
        faults.series("vmstat.pgmajfault", attributes={_FAULT_TYPE: "major"}),
    )
    total = faults.series("vmstat.pgfault")
    wanted = {**_rows(make), **events, "pgfault": total, "pgmajfault": major}
    columns = FlatKeyed({key.encode(): series for key, series in wanted.items()}.get).columns
    rising = Rising()

    def points(data: bytes) -> Iterator[Point]:
        found = dict(zip(*columns(data), strict=True))
        all_faults = found.pop(total, None)
        yield from found.items()
        if all_faults is not None and major in found:
            yield minor, rising.of(all_faults - found[major])

    return computed("vmstat", points, many=True)


def _rows(make: Instruments) -> dict[str, Series]:
    swapping = make.counter("system.paging.operations", "{operation}", "Pages swapped in and out")
    oom = make.counter(
        linux("memory", "oom_kills"),
        "{process}",
        "Processes killed for lack of memory, a cgroup's or the host's",
    )
    stalls = make.counter(
        linux("memory", "allocation.stalls"), "{event}", "Allocations that had to reclaim memory themselves"
    )
    compaction = make.counter(
        linux("memory", "compaction.operations"), "{operation}", "Allocations that had to compact memory"
    )
    table = {
        key: swapping.series(
            f"vmstat.{key}", attributes={_FAULT_TYPE: "major", "system.paging.direction": direction}
        )
        for key, direction in (("pswpin", "in"), ("pswpout", "out"))
    }
    table["oom_kill"] = oom.series("vmstat.oom_kill")
    zones = " ".join(f"allocstall_{zone}={zone}" for zone in _ZONES)
    table |= rows("vmstat", stalls, linux("memory", "zone"), zones)
    table |= rows(
        "vmstat", compaction, linux("memory", "outcome"), "compact_success=success compact_fail=fail"
    )
    return table
