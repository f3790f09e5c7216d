"""Containers that are known by an id: Docker, Podman, containerd, CRI-O, BuildKit, runc, crun.

The runtimes hand an OCI runtime either a directory (cgroupfs driver) or ``slice:prefix:id``, of
which it makes the scope ``prefix-id.scope`` (systemd driver). One that is not told of the systemd
driver takes the latter for a directory's name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from cgotel.identity import kubepods, units
from cgotel.identity.facts import CONTAINER_ID, CONTAINER_RUNTIME, NOTHING, PODMAN_POD_ID, Found

_RUNTIMES = {
    "buildkit": "buildkit",
    "cri-containerd": "containerd",
    "crio": "cri-o",
    "crun": "crun",
    "docker": "docker",
    "libpod": "podman",
    "libpod-payload": "podman",
    "nerdctl": "containerd",
    "runc": "runc",
}
_RUNTIMES_OF_PARENTS = {"default": "containerd", "docker": "docker", "k8s.io": "containerd"}

_ID = re.compile(r"[0-9a-f]{64}")
_FREELY_NAMED_SCOPE = re.compile(r"(crun|runc)-(.+)\.scope")
_SLICE_PREFIX_ID = re.compile(r"([^:]+\.slice):([^:]+):([^:]+)")
_BUILD_ID = re.compile(r"[0-9a-z]{25}")
_PODMAN_POD_SLICE = re.compile(r"(?:^|-)libpod_pod_([0-9a-f]{64})\.slice\Z")
_GARDEN_HANDLE = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){4}")


def container(container_id: str, runtime: str | None, around: Mapping[str, str] = NOTHING) -> Found:
    """A container; what its own name tells of its surroundings is ``around``."""
    if runtime is None:
        return Found("container", {CONTAINER_ID: container_id, **around})
    return Found("container", {CONTAINER_ID: container_id, CONTAINER_RUNTIME: runtime, **around})


def scope(name: str, above: Sequence[str]) -> Found | None:
    """``docker-<id>.scope`` and the like; the scopes of conmon, the monitor, are no containers."""
    prefix, _, container_id = name.removesuffix(".scope").rpartition("-")
    if _ID.fullmatch(container_id):
        return None if prefix.endswith("conmon") else container(container_id, _RUNTIMES.get(prefix))
    match = _FREELY_NAMED_SCOPE.fullmatch(name)
    return None if match is None else container(match[2], match[1])


def directory(name: str, above: Sequence[str]) -> Found | None:
    """``docker/<id>``, ``crio-<id>``; a bare id under any parent is a container of unknown runtime."""
    prefix, dash, container_id = name.rpartition("-")
    if _ID.fullmatch(container_id) is None:
        return None
    if dash:
        runtime = _RUNTIMES.get(prefix)
        return None if runtime is None else container(container_id, runtime)
    parent = above[-1] if above else ""
    if parent == "libpod_parent":
        return Found("cgroup", {PODMAN_POD_ID: name})
    if "kata_overhead" in above:  # the hypervisor of a Kata sandbox, outside of its pod
        return None
    return container(name, _RUNTIMES_OF_PARENTS.get(parent))


def misplaced(name: str, above: Sequence[str]) -> Found | None:
    """``system.slice:docker:<id>``, made by a runtime that should have asked systemd.

    dockerd runs the steps of a build so (BuildKit's executor knows no systemd driver).
    """
    match = _SLICE_PREFIX_ID.fullmatch(name)
    if match is None or match[2] not in _RUNTIMES:
        return None
    runtime = "buildkit" if _BUILD_ID.fullmatch(match[3]) else _RUNTIMES[match[2]]
    return container(match[3], runtime, kubepods.pod_of(match[1]))


def build_step(name: str, above: Sequence[str]) -> Found | None:
    """``buildkit/<id>``: a step of a build, with an id of 25 digits to the base 36."""
    if above[-1:] != ["buildkit"] or _BUILD_ID.fullmatch(name) is None:
        return None
    return container(name, "buildkit")


def garden(name: str, above: Sequence[str]) -> Found | None:
    """``garden/good/<handle>``: Cloud Foundry's Garden; over its CPU share it is moved to ``bad``."""
    by_share = above[-2:-1] == ["garden"] and above[-1] in ("good", "bad")
    directly = above[-1:] == ["garden"] and _GARDEN_HANDLE.fullmatch(name)
    return container(name, "garden") if by_share or directly else None


def podman_pod(name: str, above: Sequence[str]) -> Found | None:
    """``machine-libpod_pod_<id>.slice``: a Podman pod; to Kubernetes it is none."""
    match = _PODMAN_POD_SLICE.search(name) if "libpod_pod_" in name else None
    return None if match is None else units.slice_with(name, {PODMAN_POD_ID: match[1]})
