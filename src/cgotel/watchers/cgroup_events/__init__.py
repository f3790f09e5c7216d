"""``cgroup_events``: memory, pids and population events of every cgroup, by notification.

admin-guide/cgroup-v2.rst: "a value change in this file generates a file modified event" holds for
memory.events, memory.events.local, pids.events and cgroup.events.
"""

from __future__ import annotations

from cgotel.hookspecs import hookimpl
from cgotel.watchers.cgroup_events.watcher import CgroupEvents, CgroupEventsConfig

__all__ = ["CgroupEvents", "CgroupEventsConfig"]


@hookimpl
def cgotel_watchers() -> list[type[CgroupEvents]]:
    return [CgroupEvents]
