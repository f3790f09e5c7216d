"""The kubelet's pods and their containers: both drivers, every QoS class, every runtime."""

import pytest

from cgotel.identity import Identity, identify

ID = "c46bafd57b2ef55a23c1319893c8aa5bfca24872bd95258700a51059941fb69e"
UID = "12fdc709-933e-41d0-917f-cd84de9afa94"
UID_ = UID.replace("-", "_")
STATIC = "89f4f2cb511c3b0b7e5272cff5ec37bf"

KUBEPODS = "/kubepods.slice"
BURSTABLE = f"{KUBEPODS}/kubepods-burstable.slice/kubepods-burstable-pod{UID_}.slice"
BESTEFFORT = f"{KUBEPODS}/kubepods-besteffort.slice/kubepods-besteffort-pod{UID_}.slice"
GUARANTEED = f"{KUBEPODS}/kubepods-pod{UID_}.slice"
KIND = "/kubelet.slice/kubelet-kubepods.slice"
KIND_BESTEFFORT = f"{KIND}/kubelet-kubepods-besteffort.slice/kubelet-kubepods-besteffort-pod{UID_}.slice"


def pod(qos_class: str, uid: str = UID) -> dict[str, str]:
    return {"k8s.pod.uid": uid, "k8s.pod.qos_class": qos_class}


def container(qos_class: str, runtime: str | None, uid: str = UID) -> dict[str, str]:
    attributes = {"container.id": ID, **pod(qos_class, uid)}
    return attributes if runtime is None else {**attributes, "container.runtime.name": runtime}


SHAPES = {
    "all pods, systemd": (KUBEPODS, "slice", {"systemd.unit.name": "kubepods.slice"}),
    "all pods, cgroupfs": ("/kubepods", "cgroup", {}),
    "QoS class, systemd": (
        f"{KUBEPODS}/kubepods-burstable.slice",
        "slice",
        {"systemd.unit.name": "kubepods-burstable.slice", "systemd.slice.name": "kubepods.slice"},
    ),
    "QoS class, cgroupfs": ("/kubepods/besteffort", "cgroup", {}),
    "burstable, systemd": (BURSTABLE, "pod", pod("Burstable")),
    "best effort, systemd": (BESTEFFORT, "pod", pod("BestEffort")),
    "guaranteed, systemd": (GUARANTEED, "pod", pod("Guaranteed")),
    "burstable, cgroupfs": (f"/kubepods/burstable/pod{UID}", "pod", pod("Burstable")),
    "best effort, cgroupfs": (f"/kubepods/besteffort/pod{UID}", "pod", pod("BestEffort")),
    "guaranteed, cgroupfs": (f"/kubepods/pod{UID}", "pod", pod("Guaranteed")),
    "static pod, systemd": (
        f"{KUBEPODS}/kubepods-burstable.slice/kubepods-burstable-pod{STATIC}.slice",
        "pod",
        pod("Burstable", STATIC),
    ),
    "static pod, cgroupfs": (f"/kubepods/burstable/pod{STATIC}", "pod", pod("Burstable", STATIC)),
    "containerd, systemd": (
        f"{BURSTABLE}/cri-containerd-{ID}.scope",
        "container",
        container("Burstable", "containerd"),
    ),
    "cri-o, systemd": (f"{BESTEFFORT}/crio-{ID}.scope", "container", container("BestEffort", "cri-o")),
    "docker, systemd": (f"{GUARANTEED}/docker-{ID}.scope", "container", container("Guaranteed", "docker")),
    "containerd or docker, cgroupfs": (
        f"/kubepods/burstable/pod{UID}/{ID}",
        "container",
        container("Burstable", None),
    ),
    "cri-o, cgroupfs": (f"/kubepods/pod{UID}/crio-{ID}", "container", container("Guaranteed", "cri-o")),
    "static pod's container": (
        f"/kubepods/burstable/pod{STATIC}/{ID}",
        "container",
        container("Burstable", None, STATIC),
    ),
    "crun's own": (f"{BESTEFFORT}/crio-{ID}.scope/container", "cgroup", container("BestEffort", "cri-o")),
    "cri-o's conmon, systemd": (
        f"{BURSTABLE}/crio-conmon-{ID}.scope",
        "scope",
        {"systemd.unit.name": f"crio-conmon-{ID}.scope", **pod("Burstable")},
    ),
    "cri-o's conmon, cgroupfs": (
        f"/kubepods/burstable/pod{UID}/crio-conmon-{ID}",
        "cgroup",
        pod("Burstable"),
    ),
    "kubelet with systemd, docker without": (f"{BURSTABLE}/{ID}", "container", container("Burstable", None)),
    "kubelet with systemd, containerd without": (
        f"/system.slice/containerd.service/kubepods-besteffort-pod{UID_}.slice:cri-containerd:{ID}",
        "container",
        {"systemd.unit.name": "containerd.service", **container("BestEffort", "containerd")},
    ),
    "the same at the root": (
        f"/kubepods-pod{UID_}.slice:cri-containerd:{ID}",
        "container",
        container("Guaranteed", "containerd"),
    ),
    "--cgroup-root, systemd": (
        f"{KIND_BESTEFFORT}/cri-containerd-{ID}.scope",
        "container",
        container("BestEffort", "containerd"),
    ),
    "--cgroup-root, systemd, guaranteed": (
        f"{KIND}/kubelet-kubepods-pod{UID_}.slice",
        "pod",
        pod("Guaranteed"),
    ),
    "--cgroup-root, cgroupfs": (
        f"/kubelet/kubepods/burstable/pod{UID}/{ID}",
        "container",
        container("Burstable", None),
    ),
    "systemd in a container": (
        f"{BURSTABLE}/cri-containerd-{ID}.scope/system.slice/sshd.service",
        "service",
        {
            "systemd.unit.name": "sshd.service",
            "systemd.slice.name": "system.slice",
            **container("Burstable", "containerd"),
        },
    ),
    "not a pod: elsewhere": (f"/pods/pod{UID}", "cgroup", {}),
    "not a pod: no UID": ("/kubepods/burstable/pod", "cgroup", {}),
    "not a pod: the kubelet": (
        "/system.slice/kubelet.service",
        "service",
        {"systemd.unit.name": "kubelet.service", "systemd.slice.name": "system.slice"},
    ),
}


@pytest.mark.parametrize(("path", "kind", "attributes"), SHAPES.values(), ids=SHAPES)
def test_pods(path: str, kind: str, attributes: dict[str, str]) -> None:
    assert identify(path) == Identity(kind, attributes)
