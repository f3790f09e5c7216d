"""Docker: dockerd, a shim of containerd, runc."""

from __future__ import annotations

import subprocess

from tests.lab.guest.supervisors.engine import Engine


class Docker(Engine):
    name = "docker"
    socket = "/run/docker.sock"

    def begin(self) -> None:
        subprocess.run(["systemctl", "start", "docker.service"], check=True)
        super().begin()
