"""systemd: runs of services and scopes over D-Bus, killers in user space, the host's shutdown and sleep."""

from __future__ import annotations

from cgotel.contract import Watcher
from cgotel.hookspecs import hookimpl
from cgotel.runtimes.systemd.watcher import SystemdWatcher

__all__ = ["SystemdWatcher"]


@hookimpl
def cgotel_watchers() -> list[type[Watcher]]:
    """The watcher of this package."""
    return [SystemdWatcher]
