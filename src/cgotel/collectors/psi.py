"""Pressure stall information, of a cgroup or of the host (accounting/psi.rst).

    some avg10=0.05 avg60=1.02 avg300=0.46 total=1912493
    full avg10=0.00 avg60=0.00 avg300=0.00 total=0

``some``: at least one task waited; ``full``: all of them did. Averages are percent, totals are
microseconds. irq has ``full`` only and exists only with IRQ time accounting.

For the whole machine ``full`` of the CPU is not defined: something always runs while others wait.
The kernel prints zeros there (kernel/sched/psi.c, psi_show), which were never measured.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from cgotel.collectors.instruments import Instruments
from cgotel.collectors.tables import MICROSECONDS, PERCENT, FileTable, pairs
from cgotel.model import Series

RESOURCES = ("cpu", "memory", "io", "irq")
_WINDOWS = {"avg10": "10s", "avg60": "1m", "avg300": "5m"}
_STALL_TYPE = "system.linux.pressure.stall_type"


def tables(make: Instruments, file: str, name: str, averages: bool, machine: bool) -> list[FileTable]:
    """One table for each resource, whose name stands for ``{}`` in ``file`` and in ``name``.

    The metrics are ``name.time`` and, where the kernel's running ``averages`` are asked for,
    ``name.10s``, ``.1m`` and ``.5m``. ``machine``: the files are about all tasks of the machine.
    """
    return [
        _table(
            file.format(resource),
            _columns(make, name.format(resource), resource, averages),
            ("some",) if machine and resource == "cpu" else ("some", "full"),
        )
        for resource in RESOURCES
    ]


_Column = Callable[..., Series]


def _columns(make: Instruments, name: str, resource: str, averages: bool) -> dict[str, _Column]:
    time = make.counter(f"{name}.time", "s", f"Time that tasks were stalled on {resource}", "double")
    columns: dict[str, _Column] = {"total": partial(time.series, divisor=MICROSECONDS)}
    for key, window in _WINDOWS.items() if averages else ():
        share = make.gauge(
            f"{name}.{window}", "1", f"Share of the last {window} stalled on {resource}", "double"
        )
        columns[key] = partial(share.series, divisor=PERCENT)
    return columns


def _table(file: str, columns: dict[str, _Column], stall_types: tuple[str, ...]) -> FileTable:
    source = file.replace("/", ".")

    def row(stall_type: str, key: str) -> Series | None:
        if stall_type not in stall_types or key not in columns:
            return None
        return columns[key](f"{source}.{stall_type}.{key}", attributes={_STALL_TYPE: stall_type})

    return pairs(file, row, decimals=len(columns) > 1, alike=True)
