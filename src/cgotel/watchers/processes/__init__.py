"""``processes``: how every process of the host ended, from the kernel's process connector."""

from __future__ import annotations

from cgotel.hookspecs import hookimpl
from cgotel.watchers.processes.watcher import Processes, ProcessesConfig

__all__ = ["Processes", "ProcessesConfig"]


@hookimpl
def cgotel_watchers() -> list[type[Processes]]:
    return [Processes]
