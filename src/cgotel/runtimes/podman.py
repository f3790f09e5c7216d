"""Watcher `podman`: what Podman's API service says of its containers."""

from __future__ import annotations

from cgotel.contract import Watcher
from cgotel.hookspecs import hookimpl
from cgotel.runtimes.engine.dialect import PODMAN
from cgotel.runtimes.engine.watcher import EngineWatcher


class PodmanWatcher(EngineWatcher):
    """Podman from 4.0 on, root's and rootless, where ``podman.socket`` is enabled."""

    name = "podman"
    needs = ("/run/podman/podman.sock (systemctl enable --now podman.socket), as root; users' own likewise",)
    dialect = PODMAN
    usual = ("/run/podman/podman.sock", "/run/user/*/podman/podman.sock")
    variable = "CONTAINER_HOST"


@hookimpl
def cgotel_watchers() -> list[type[Watcher]]:
    return [PodmanWatcher]
