"""Where Docker and Podman differ."""

from __future__ import annotations

from typing import NamedTuple


class Dialect(NamedTuple):
    """One engine: its name in evidence, the prefix of its cgroups, where they go if nobody says."""

    runtime: str
    title: str
    prefix: str
    slice: str
    directory: str
    group: str


DOCKER = Dialect("docker", "Docker", "docker", "system.slice", "/docker", "docker")
PODMAN = Dialect("podman", "Podman", "libpod", "machine.slice", "/libpod_parent", "")
