"""Health probes of cgotel's own: HTTP, TCP, a command."""

from __future__ import annotations

from cgotel.contract import Watcher
from cgotel.hookspecs import hookimpl
from cgotel.watchers.probes.watcher import ProbesWatcher


@hookimpl
def cgotel_watchers() -> list[type[Watcher]]:
    """The watcher of the configured probes."""
    return [ProbesWatcher]
