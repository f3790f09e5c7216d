"""Pressure stall information of a cgroup (accounting/psi.rst).

    some avg10=0.05 avg60=1.02 avg300=0.46 total=1912493
    full avg10=0.00 avg60=0.00 avg300=0.00 total=0

``some``: at least one task waited; ``full``: all of them did. Averages are percent, totals are
microseconds. irq.pressure has ``full`` only and exists only with IRQ time accounting.

For the whole machine ``full`` of the CPU is not defined: something always runs while others wait.
The kernel prints zeros there (kernel/sched/psi.c, psi_show), which were never measured.
"""

from __future__ import annotations

from cgotel.collectors.cgroup.tables import Family
from cgotel.collectors.tables import MICROSECONDS, PERCENT, FileTable, pairs
from cgotel.model import Instrument, Series

RESOURCES = ("cpu", "memory", "io", "irq")
_WINDOWS = {"avg10": "10s", "avg60": "1m", "avg300": "5m"}
_STALL_TYPE = "system.linux.pressure.stall_type"
_STALL_TYPES = ("some", "full")


def tables(family: Family, averages: bool, machine: bool = False) -> list[FileTable]:
    """One table for each resource; the kernel's running averages only where asked for.

    ``machine`` is true for the root cgroup, whose tasks are all the machine's.
    """
    return [
        _table(family, resource, averages, ("some",) if machine and resource == "cpu" else _STALL_TYPES)
        for resource in RESOURCES
    ]


def _table(family: Family, resource: str, averages: bool, stall_types: tuple[str, ...]) -> FileTable:
    time = family.counter(
        f"{resource}.pressure.time", "s", f"Time that tasks were stalled on {resource}", "double"
    )
    windows: dict[str, Instrument] = {}
    if averages:
        windows = {
            key: family.gauge(
                f"{resource}.pressure.{window}",
                "1",
                f"Share of the last {window} stalled on {resource}",
                "double",
            )
            for key, window in _WINDOWS.items()
        }

    def make(stall_type: str, key: str) -> Series | None:
        if stall_type not in stall_types:
            return None
        source = f"{resource}.pressure.{stall_type}.{key}"
        if key == "total":
            return time.series(source, MICROSECONDS, {_STALL_TYPE: stall_type})
        if key in windows:
            return windows[key].series(source, PERCENT, {_STALL_TYPE: stall_type})
        return None

    return pairs(f"{resource}.pressure", make, decimals=averages)
