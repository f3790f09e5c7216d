"""Watcher `docker`: what Docker's daemon says of its containers."""

from __future__ import annotations

from cgotel.contract import Watcher
from cgotel.hookspecs import hookimpl
from cgotel.runtimes.engine.dialect import DOCKER
from cgotel.runtimes.engine.watcher import EngineWatcher


class DockerWatcher(EngineWatcher):
    """Docker Engine from 20.10 on, root's and rootless."""

    name = "docker"
    needs = ("/run/docker.sock, as root or a member of group docker: that group is as mighty as root",)
    dialect = DOCKER
    usual = ("/run/docker.sock", "/run/user/*/docker.sock")
    variable = "DOCKER_HOST"


@hookimpl
def cgotel_watchers() -> list[type[Watcher]]:
    return [DockerWatcher]
