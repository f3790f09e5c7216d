"""Every cgroup's own files, and the limits in force for it wherever they were set."""

from cgotel.collectors.cgroup.collector import CgroupCollector, CgroupConfig
from cgotel.hookspecs import hookimpl

__all__ = ["CgroupCollector", "CgroupConfig"]


@hookimpl
def cgotel_collectors() -> list[type[CgroupCollector]]:
    return [CgroupCollector]
