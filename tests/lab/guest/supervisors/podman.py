"""Podman: no daemon but the service of its API; conmon, crun."""

from __future__ import annotations

import subprocess

from tests.lab.guest.supervisors.engine import Engine
from tests.lab.guest.supervisors.model import GATE, Program


class Podman(Engine):
    name = "podman"
    socket = "/run/podman/podman.sock"

    def begin(self) -> None:
        subprocess.run(["systemctl", "start", "podman.socket"], check=True)
        super().begin()

    def create(self, name: str, program: Program) -> str:
        """By the command where a failed health check has consequences: Docker's API knows none."""
        probe = program.probe
        if not probe or probe.on_failure == "none":
            return super().create(name, program)
        command = ["podman", "create", "--name", name, "--network=host", f"--env=GATE={GATE}"]
        command += [f"--health-cmd={probe.command}", f"--health-on-failure={probe.on_failure}"]
        command += [f"--health-interval={probe.interval_s}s", f"--health-retries={probe.retries}"]
        command += [f"--health-timeout={probe.timeout_s}s", program.image, "sh", "-c", program.script]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
