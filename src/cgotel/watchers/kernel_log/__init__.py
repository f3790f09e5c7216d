"""``kernel_log``: OOM kills, refused forks, faults, hung tasks, GPU errors and sleep, from /dev/kmsg."""

from __future__ import annotations

from cgotel.hookspecs import hookimpl
from cgotel.watchers.kernel_log.watcher import KernelLog, KernelLogConfig

__all__ = ["KernelLog", "KernelLogConfig"]


@hookimpl
def cgotel_watchers() -> list[type[KernelLog]]:
    """The watcher of this package."""
    return [KernelLog]
