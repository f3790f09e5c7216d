"""The machine that all cgroups share: memory, swap, NUMA nodes, zram devices, processes."""

from cgotel.collectors.host.collector import HostCollector, HostConfig
from cgotel.hookspecs import hookimpl

__all__ = ["HostCollector", "HostConfig"]


@hookimpl
def cgotel_collectors() -> list[type[HostCollector]]:
    return [HostCollector]
