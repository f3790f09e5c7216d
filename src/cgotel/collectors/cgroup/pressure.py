"""Pressure on a cgroup: cpu.pressure, memory.pressure, io.pressure and irq.pressure."""

from __future__ import annotations

from cgotel.collectors import psi
from cgotel.collectors.cgroup.tables import Family
from cgotel.collectors.tables import FileTable


def tables(family: Family, averages: bool, machine: bool = False) -> list[FileTable]:
    """One table for each resource; the kernel's running averages only where asked for.

    ``machine`` is true for the root cgroup, whose tasks are all the machine's.
    """
    return psi.tables(family, "{}.pressure", "{}.pressure", averages, machine)
