"""systemd: runs of services and scopes over D-Bus, killers in user space, the host's shutdown and sleep."""

from __future__ import annotations

from cgotel.contract import Watcher
from cgotel.hookspecs import hookimpl
from cgotel.runtimes.systemd.watcher import SystemdSettings, SystemdWatcher

__all__ = ["SystemdSettings", "SystemdWatcher"]


@hookimpl
def cgotel_watchers() -> list[type[Watcher]]:
    """The watcher of this package."""
    return [SystemdWatcher]
