"""Containers known by an id, as each runtime and driver shapes their paths."""

import pytest

from cgotel.identity import Identity, identify

ID = "7f5e1c0b9ad84c0fb6d2f3e4a59687c1d2e3f405162738495a6b7c8d9e0f1a2b"
POD = "0a7c8532b5e0fb5064b894cc1381a62b53253dd450ad088ef0822ce37efceb04"
BUILD = "jvifp9a6b1lxa1kuw8bwfcovf"
MANAGER = "/user.slice/user-1000.slice/user@1000.service"


def container(runtime: str | None, **more: str) -> dict[str, str]:
    attributes = {"container.id": ID, **{key.replace("_", "."): value for key, value in more.items()}}
    return attributes if runtime is None else {**attributes, "container.runtime.name": runtime}


def in_slice(name: str, attributes: dict[str, str]) -> dict[str, str]:
    return {**attributes, "systemd.slice.name": name}


SHAPES = {
    # moby daemon/oci_linux.go, withCgroups()
    "docker, systemd": (
        f"/system.slice/docker-{ID}.scope",
        "container",
        in_slice("system.slice", container("docker")),
    ),
    "docker, cgroupfs": (f"/docker/{ID}", "container", container("docker")),
    "docker, --cgroup-parent gpu.slice": (
        f"/gpu.slice/docker-{ID}.scope",
        "container",
        in_slice("gpu.slice", container("docker")),
    ),
    "docker, --cgroup-parent /actions_job": (f"/actions_job/{ID}", "container", container(None)),
    "docker, rootless": (
        f"{MANAGER}/user.slice/docker-{ID}.scope",
        "container",
        in_slice("user.slice", container("docker", user_id="1000")),
    ),
    "docker, below the container": (f"/docker/{ID}/init", "cgroup", container("docker")),
    # moby daemon/command/daemon_unix.go newCgroupParent(), buildkit executor/oci/spec.go
    "buildkit in dockerd, systemd": (
        f"/system.slice/system.slice:docker:{BUILD}",
        "container",
        {
            "container.id": BUILD,
            "container.runtime.name": "buildkit",
            "systemd.slice.name": "system.slice",
        },
    ),
    "buildkit in dockerd, cgroupfs": (
        f"/docker/buildkit/{BUILD}",
        "container",
        {"container.id": BUILD, "container.runtime.name": "buildkit"},
    ),
    "buildkitd": (
        f"/system.slice/buildkit.service/buildkit/{BUILD}",
        "container",
        {
            "container.id": BUILD,
            "container.runtime.name": "buildkit",
            "systemd.unit.name": "buildkit.service",
        },
    ),
    "docker told of systemd, runtime not": (
        f"/system.slice/system.slice:docker:{ID}",
        "container",
        in_slice("system.slice", container("docker")),
    ),
    # podman libpod/container_internal_linux.go, getOCICgroupPath()
    "podman, systemd": (
        f"/machine.slice/libpod-{ID}.scope",
        "container",
        in_slice("machine.slice", container("podman")),
    ),
    "podman, crun's own": (f"/machine.slice/libpod-{ID}.scope/container", "cgroup", container("podman")),
    "podman, cgroupfs": (f"/libpod_parent/libpod-{ID}", "container", container("podman")),
    "podman, rootless": (
        f"{MANAGER}/user.slice/libpod-{ID}.scope",
        "container",
        in_slice("user.slice", container("podman", user_id="1000")),
    ),
    "podman, rootless, crun's own": (
        f"{MANAGER}/user.slice/libpod-{ID}.scope/container",
        "cgroup",
        container("podman", user_id="1000"),
    ),
    "podman, quadlet": (
        f"/system.slice/web.service/libpod-payload-{ID}",
        "container",
        container("podman", systemd_unit_name="web.service"),
    ),
    "podman, rootless quadlet": (
        f"{MANAGER}/app.slice/web.service/libpod-payload-{ID}",
        "container",
        container("podman", systemd_unit_name="web.service", user_id="1000"),
    ),
    "podman, conmon of a quadlet": (
        "/system.slice/web.service/runtime",
        "cgroup",
        {"systemd.unit.name": "web.service"},
    ),
    "podman, conmon": (
        f"/machine.slice/libpod-conmon-{ID}.scope",
        "scope",
        {"systemd.unit.name": f"libpod-conmon-{ID}.scope", "systemd.slice.name": "machine.slice"},
    ),
    "podman, conmon, cgroupfs": ("/libpod_parent/conmon", "cgroup", {}),
    "podman, health check": (
        f"/system.slice/{ID}-5f1e2d3c4b5a6978.service",
        "service",
        {"systemd.unit.name": f"{ID}-5f1e2d3c4b5a6978.service", "systemd.slice.name": "system.slice"},
    ),
    # podman libpod/runtime_pod_linux.go, platformMakePod()
    "podman pod, systemd": (
        f"/machine.slice/machine-libpod_pod_{POD}.slice",
        "slice",
        {
            "podman.pod.id": POD,
            "systemd.unit.name": f"machine-libpod_pod_{POD}.slice",
            "systemd.slice.name": "machine.slice",
        },
    ),
    "podman pod, its container": (
        f"/machine.slice/machine-libpod_pod_{POD}.slice/libpod-{ID}.scope",
        "container",
        in_slice(f"machine-libpod_pod_{POD}.slice", container("podman", podman_pod_id=POD)),
    ),
    "podman pod, its conmon": (
        f"/machine.slice/machine-libpod_pod_{POD}.slice/libpod-conmon-{ID}.scope",
        "scope",
        {
            "podman.pod.id": POD,
            "systemd.unit.name": f"libpod-conmon-{ID}.scope",
            "systemd.slice.name": f"machine-libpod_pod_{POD}.slice",
        },
    ),
    "podman pod, rootless": (
        f"{MANAGER}/user.slice/user-libpod_pod_{POD}.slice/libpod-{ID}.scope/container",
        "cgroup",
        container("podman", podman_pod_id=POD, user_id="1000"),
    ),
    "podman pod, cgroupfs": (f"/libpod_parent/{POD}", "cgroup", {"podman.pod.id": POD}),
    "podman pod, cgroupfs, its container": (
        f"/libpod_parent/{POD}/libpod-{ID}",
        "container",
        container("podman", podman_pod_id=POD),
    ),
    # containerd pkg/oci/spec.go, nerdctl pkg/cmd/container/run_cgroup_linux.go
    "containerd's default namespace": (f"/default/{ID}", "container", container("containerd")),
    "containerd's k8s.io namespace": (f"/k8s.io/{ID}", "container", container("containerd")),
    "nerdctl, systemd": (
        f"/system.slice/nerdctl-{ID}.scope",
        "container",
        in_slice("system.slice", container("containerd")),
    ),
    "nerdctl, rootless": (
        f"{MANAGER}/user.slice/nerdctl-{ID}.scope",
        "container",
        in_slice("user.slice", container("containerd", user_id="1000")),
    ),
    "containerd without pod": (
        f"/system.slice/cri-containerd-{ID}.scope",
        "container",
        in_slice("system.slice", container("containerd")),
    ),
    # cri-o internal/config/cgmgr
    "cri-o without pod": (f"/crio/crio-{ID}", "container", container("cri-o")),
    "cri-o, conmon": (
        f"/system.slice/crio-conmon-{ID}.scope",
        "scope",
        {"systemd.unit.name": f"crio-conmon-{ID}.scope", "systemd.slice.name": "system.slice"},
    ),
    "cri-o, image pull": (
        "/system.slice/crio-pull-image-4711.scope",
        "scope",
        {"systemd.unit.name": "crio-pull-image-4711.scope", "systemd.slice.name": "system.slice"},
    ),
    # crun src/libcrun/cgroup-systemd.c get_systemd_scope_and_slice(), runc's default prefix
    "crun alone": (
        "/system.slice/crun-buildah-buildah2365838308.scope/container",
        "cgroup",
        {"container.id": "buildah-buildah2365838308", "container.runtime.name": "crun"},
    ),
    "runc alone": (
        "/system.slice/runc-web.scope",
        "container",
        {
            "container.id": "web",
            "container.runtime.name": "runc",
            "systemd.slice.name": "system.slice",
        },
    ),
    "another runtime": (
        f"/system.slice/youki-{ID}.scope",
        "container",
        in_slice("system.slice", container(None)),
    ),
    # cloudfoundry/guardian rundmc/cgroups/constants.go
    "garden": (
        "/system.slice/garden.service/garden/good/2f57368b-0eda-4e52-64d8-af5c/init",
        "cgroup",
        {
            "container.id": "2f57368b-0eda-4e52-64d8-af5c",
            "container.runtime.name": "garden",
            "systemd.unit.name": "garden.service",
        },
    ),
    "garden, over its share": (
        "/garden/bad/2f57368b-0eda-4e52-64d8-af5c",
        "container",
        {"container.id": "2f57368b-0eda-4e52-64d8-af5c", "container.runtime.name": "garden"},
    ),
    "garden, before good and bad": (
        "/garden/2f57368b-0eda-4e52-64d8-af5c",
        "container",
        {"container.id": "2f57368b-0eda-4e52-64d8-af5c", "container.runtime.name": "garden"},
    ),
    "garden's own": ("/garden/good", "cgroup", {}),
    "kata's hypervisor": (f"/kata_overhead/{ID}", "cgroup", {}),
    "not an id: upper case": (f"/docker/{ID.upper()}", "cgroup", {}),
    "not an id: short": ("/docker/7f5e1c0b9ad8", "cgroup", {}),
    "not a runtime": (f"/batch-{ID}", "cgroup", {}),
    "not a container: a mount": (
        f"/system.slice/var-lib-docker-containers-{ID}-mounts-shm.mount",
        "mount",
        {
            "systemd.unit.name": f"var-lib-docker-containers-{ID}-mounts-shm.mount",
            "systemd.slice.name": "system.slice",
        },
    ),
    "not a container: the daemon": (
        "/system.slice/docker.service",
        "service",
        {"systemd.unit.name": "docker.service", "systemd.slice.name": "system.slice"},
    ),
}


@pytest.mark.parametrize(("path", "kind", "attributes"), SHAPES.values(), ids=SHAPES)
def test_containers(path: str, kind: str, attributes: dict[str, str]) -> None:
    assert identify(path) == Identity(kind, attributes)
