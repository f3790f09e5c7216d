"""The CRI: containers of Kubernetes' pods by their names there, from containerd or CRI-O."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Annotated

import msgspec

from cgotel.contract import (
    Bookmark,
    Report,
    Roots,
    SourceStatus,
    State,
    Stop,
    Timeline,
    Unavailable,
    Watcher,
    WatcherSettings,
)
from cgotel.hookspecs import hookimpl
from cgotel.runtimes.cri_daemon import Daemon
from cgotel.runtimes.cri_runs import SOURCE
from cgotel.runtimes.kept import Shelf
from cgotel.runtimes.several import Several

USUAL = (
    "/run/containerd/containerd.sock",
    "/run/crio/crio.sock",
    "/run/k3s/containerd/containerd.sock",
)
"""Where kubelets find their runtime."""

_Path = Annotated[str, msgspec.Meta(pattern="^/")]


class CriSettings(WatcherSettings, frozen=True):
    """``[watchers.cri]``."""

    sockets: tuple[_Path, ...] = ()
    """Sockets of the CRI; unset: the usual ones, where a kubelet has made its cgroups."""
    interval: Annotated[float, msgspec.Meta(ge=0.1, le=60)] = 1.0
    """Seconds between looks at a runtime that tells nothing by itself, or nobody but the kubelet."""


class CriWatcher(Watcher):
    """Beginnings and ends of the containers of pods, with the runtime's reasons.

    While it is at work on a socket of containerd's, the watcher ``containerd`` leaves the ends in its
    namespace ``k8s.io`` to it.
    """

    name = SOURCE
    Config = CriSettings
    needs = (
        "a kubelet's cgroups (kubepods), or [watchers.cri] sockets",
        f"{USUAL[0]} or the like, for reading and writing (root)",
        "grpcio: pip install 'cgotel[containerd]'",
    )

    def __init__(self, config: CriSettings, roots: Roots, timeline: Timeline, bookmark: Bookmark) -> None:
        super().__init__(config, roots, timeline, bookmark)
        self._shelf = Shelf(bookmark, SOURCE)
        self._daemons = Several(())

    def start(self) -> None:
        """Connect. Raises `Unavailable` where there is no kubelet, or no runtime answers."""
        self._daemons = Several(
            [
                Daemon(path, self.config.interval, self.roots, self.timeline, self._shelf)
                for path in self.config.sockets or self._usual()
            ]
        )
        self._daemons.open()

    def watch(self, report: Report, stop: Stop) -> None:
        """Report what happens. Raises `Unavailable` when the only runtime is lost."""
        self._daemons.watch(report, stop)

    def sources(self) -> Iterator[SourceStatus]:
        """Each socket, where there are several."""
        return self._daemons.sources()

    def close(self) -> None:
        """Disconnect."""
        self._daemons.close()

    def _usual(self) -> list[str]:
        if not _has_pods(self.roots):
            raise Unavailable(
                SourceStatus(SOURCE, State.OFF, "no kubelet's cgroups (kubepods) are here", "none needed")
            )
        found = list(dict.fromkeys(path for path in map(os.path.realpath, USUAL) if os.path.exists(path)))
        if not found:
            remedy = "name the runtime's socket in [watchers.cri] sockets"
            raise Unavailable(SourceStatus(SOURCE, State.ABSENT, f"none of {', '.join(USUAL)}", remedy))
        return found


def _has_pods(roots: Roots) -> bool:
    """Whether a kubelet has made its cgroups: ``/kubepods``, ``/kubepods.slice``, or below a cgroup root."""
    if roots.cgroup is None:
        return False
    try:
        names = [entry.name for entry in os.scandir(roots.cgroup) if entry.is_dir()]
        names += [
            name for top in names if top.startswith("kubelet") for name in os.listdir(f"{roots.cgroup}/{top}")
        ]
    except OSError:
        return False
    return any(name.startswith(("kubepods", "kubelet-kubepods")) for name in names)


@hookimpl
def cgotel_watchers() -> list[type[Watcher]]:
    """The CRI watcher."""
    return [CriWatcher]
