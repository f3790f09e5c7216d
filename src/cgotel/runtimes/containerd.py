"""containerd: who begins and ends under it, by its events (of nerdctl, ctr, Docker and Kubernetes)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import msgspec

from cgotel.contract import (
    Bookmark,
    Report,
    Roots,
    SourceStatus,
    Stop,
    Timeline,
    Watcher,
    WatcherSettings,
)
from cgotel.hookspecs import hookimpl
from cgotel.runtimes.containerd_daemon import Daemon
from cgotel.runtimes.containerd_runs import SOURCE
from cgotel.runtimes.kept import Shelf
from cgotel.runtimes.several import Several

_Path = Annotated[str, msgspec.Meta(pattern="^/")]


class ContainerdSettings(WatcherSettings, frozen=True):
    """``[watchers.containerd]``."""

    sockets: Annotated[tuple[_Path, ...], msgspec.Meta(min_length=1)] = ("/run/containerd/containerd.sock",)
    """Sockets of containerd's own API, each watched by itself (k3s: /run/k3s/containerd/containerd.sock)."""


class ContainerdWatcher(Watcher):
    """Beginnings and ends of tasks, and what else happens to them, in every namespace.

    Docker's namespace has a watcher that knows more, and so has Kubernetes' where the CRI watcher is at
    work: of them only what containerd alone tells is told, and never an end.
    """

    name = SOURCE
    Config = ContainerdSettings
    needs = (
        "/run/containerd/containerd.sock, for reading and writing (root): events of containers",
        "grpcio: pip install 'cgotel[containerd]'",
    )

    def __init__(
        self, config: ContainerdSettings, roots: Roots, timeline: Timeline, bookmark: Bookmark
    ) -> None:
        super().__init__(config, roots, timeline, bookmark)
        shelf = Shelf(bookmark, SOURCE)
        self._daemons = Several([Daemon(path, roots, timeline, shelf) for path in config.sockets])

    def start(self) -> None:
        """Connect to every socket. Raises `Unavailable` where none answers."""
        self._daemons.open()

    def watch(self, report: Report, stop: Stop) -> None:
        """Report what happens. Raises `Unavailable` when the only containerd is lost."""
        self._daemons.watch(report, stop)

    def sources(self) -> Iterator[SourceStatus]:
        """Each socket, where there are several."""
        return self._daemons.sources()

    def close(self) -> None:
        """Disconnect."""
        self._daemons.close()


@hookimpl
def cgotel_watchers() -> list[type[Watcher]]:
    """The containerd watcher."""
    return [ContainerdWatcher]
