"""Nesting, hostile names, and what holds for any path."""

import os
from typing import get_args

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cgotel.identity import ATTRIBUTES, KINDS, Identity, Kind, identify

OUTER = "4cc818a75eb691c5efb9c943b0c3a26ec8e0a05acb60bef4717315e65d671774"
MIDDLE = "88ea268ece65a02d68b169fd74bcbcb427eb7f28900db0e3b906fb2eeb7341df"
INNER = "c46bafd57b2ef55a23c1319893c8aa5bfca24872bd95258700a51059941fb69e"
UID = "12fdc709-933e-41d0-917f-cd84de9afa94"
UID_ = UID.replace("-", "_")
OUTER_UID = "a5ea884f-9e60-4912-bd62-fef9a31db47a"

NODE = f"/system.slice/docker-{OUTER}.scope"
NODE_POD = (
    f"{NODE}/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/"
    f"kubelet-kubepods-burstable-pod{UID_}.slice"
)
POD = {"k8s.pod.uid": UID, "k8s.pod.qos_class": "Burstable"}

NESTED = {
    "docker in docker": (
        f"/docker/{OUTER}/docker/{INNER}",
        "container",
        {
            "container.id": INNER,
            "container.runtime.name": "docker",
            "cgroup.parent.container.id": OUTER,
        },
    ),
    "docker in docker in docker": (
        f"/docker/{OUTER}/docker/{MIDDLE}/docker/{INNER}",
        "container",
        {
            "container.id": INNER,
            "container.runtime.name": "docker",
            "cgroup.parent.container.id": MIDDLE,
        },
    ),
    "podman in docker": (
        f"{NODE}/machine.slice/libpod-{INNER}.scope/container",
        "cgroup",
        {
            "container.id": INNER,
            "container.runtime.name": "podman",
            "cgroup.parent.container.id": OUTER,
        },
    ),
    "systemd in docker": (
        f"{NODE}/system.slice/nginx.service",
        "service",
        {
            "container.id": OUTER,
            "container.runtime.name": "docker",
            "systemd.unit.name": "nginx.service",
            "systemd.slice.name": "system.slice",
        },
    ),
    "init of systemd in docker": (
        f"{NODE}/init.scope",
        "scope",
        {"container.id": OUTER, "container.runtime.name": "docker", "systemd.unit.name": "init.scope"},
    ),
    "user in a systemd in docker": (
        f"{NODE}/user.slice/user-1001.slice/user@1001.service/app.slice",
        "slice",
        {
            "container.id": OUTER,
            "container.runtime.name": "docker",
            "user.id": "1001",
            "systemd.unit.name": "app.slice",
        },
    ),
    "pod in kind's node": (NODE_POD, "pod", {**POD, "cgroup.parent.container.id": OUTER}),
    "container in kind's node": (
        f"{NODE_POD}/cri-containerd-{INNER}.scope",
        "container",
        {
            **POD,
            "container.id": INNER,
            "container.runtime.name": "containerd",
            "cgroup.parent.container.id": OUTER,
        },
    ),
    "container in kind's node, cgroupfs": (
        f"/docker/{OUTER}/kubelet/kubepods/burstable/pod{UID}/{INNER}",
        "container",
        {**POD, "container.id": INNER, "cgroup.parent.container.id": OUTER},
    ),
    "kind's node in a pod": (
        f"/kubepods/besteffort/pod{OUTER_UID}/{OUTER}/docker/{MIDDLE}/kubelet/kubepods/burstable/pod{UID}",
        "pod",
        {**POD, "cgroup.parent.container.id": MIDDLE},
    ),
    "docker in a pod": (
        f"/kubepods/burstable/pod{UID}/{OUTER}/docker/{INNER}",
        "container",
        {
            **POD,
            "container.id": INNER,
            "container.runtime.name": "docker",
            "cgroup.parent.container.id": OUTER,
        },
    ),
    "docker in lxc": (
        f"/lxc.payload.ci/system.slice/docker-{INNER}.scope",
        "container",
        {
            "container.id": INNER,
            "container.runtime.name": "docker",
            "cgroup.parent.container.name": "ci",
            "systemd.slice.name": "system.slice",
        },
    ),
    "lxc in docker": (
        f"{NODE}/lxc.payload.ci",
        "container",
        {
            "container.name": "ci",
            "container.runtime.name": "lxc",
            "cgroup.parent.container.id": OUTER,
        },
    ),
    "docker in lxc in docker": (
        f"{NODE}/lxc.payload.ci/docker/{INNER}",
        "container",
        {
            "container.id": INNER,
            "container.runtime.name": "docker",
            "cgroup.parent.container.name": "ci",
        },
    ),
    "virtual machine in docker": (
        f"{NODE}/machine/qemu-1-vm.libvirt-qemu",
        "machine",
        {"container.id": OUTER, "container.runtime.name": "docker", "libvirt.domain.name": "vm"},
    ),
}

HOSTILE = {
    "no UTF-8": (b"/lxc.payload.caf\xe9", "container", "container.name", "caf\\xe9"),
    "no UTF-8 in a pod": (b"/kubepods/pod\xff\xfe", "pod", "k8s.pod.uid", "\\xff\\xfe"),
    "no UTF-8 in an escaped name": (
        b"/machine-\xff\\x2da.scope",
        "machine",
        "systemd.machine.name",
        "\\xff-a",
    ),
    "UTF-8": ("/lxc.payload.café".encode(), "container", "container.name", "café"),
    "huge": (b"/lxc.payload." + b"x" * 4000, "container", "container.name", "x" * 4000),
}


@pytest.mark.parametrize(("path", "kind", "attributes"), NESTED.values(), ids=NESTED)
def test_nested(path: str, kind: str, attributes: dict[str, str]) -> None:
    assert identify(path) == Identity(kind, attributes)


@pytest.mark.parametrize(("path", "kind", "attribute", "value"), HOSTILE.values(), ids=HOSTILE)
def test_hostile(path: bytes, kind: str, attribute: str, value: str) -> None:
    identity = identify(os.fsdecode(path))
    assert (identity.kind, identity.attributes[attribute]) == (kind, value)


@pytest.mark.parametrize("path", ["/", "", "//"])
def test_root(path: str) -> None:
    assert identify(path) == Identity("root", {})


def test_kinds_are_documented_and_closed() -> None:
    assert set(KINDS) == set(get_args(Kind))


def test_an_identity_cannot_be_changed() -> None:
    identity = identify("/system.slice/nginx.service")
    with pytest.raises(TypeError):
        identity.attributes["container.id"] = OUTER  # type: ignore[index]
    with pytest.raises(AttributeError):
        identity.kind = "root"  # type: ignore[misc]


KNOWN_NAMES = [
    *sorted({name for path, _, _ in NESTED.values() for name in path.split("/") if name}),
    "lxc",
    "garden",
    "good",
    "ecs",
    "buildkit",
    "kata_overhead",
    "libpod_parent",
    "default",
    "machine.slice",
    "slurmstepd.scope",
    "job_1",
    "step_0",
    "user",
    "task_0",
    "0a1b2c3d4e5f60718293a4b5c6d7e8f9",
    "0a1b2c3d4e5f60718293a4b5c6d7e8f9-1",
    "jvifp9a6b1lxa1kuw8bwfcovf",
    f"machine-libpod_pod_{INNER}.slice",
    f"kubepods-pod{UID_}.slice:cri-containerd:{INNER}",
    f"libpod-conmon-{INNER}.scope",
    f"libpod-{INNER}",
    "crun-a.scope",
    "machine-lxc\\x2d1\\x2da.scope",
    "systemd-nspawn@a.service",
    "qemu.slice",
    "100.scope",
    "user@1.service",
]
any_name = st.one_of(
    st.sampled_from(KNOWN_NAMES),
    st.text(),
    st.text(st.characters(categories=["Cs", "Lu"])),
    st.binary().map(os.fsdecode),
    st.tuples(st.sampled_from(KNOWN_NAMES), st.text(max_size=2)).map("".join),
    st.tuples(st.text(max_size=2), st.sampled_from(KNOWN_NAMES)).map("".join),
)
any_path = st.lists(any_name, max_size=7).map(lambda names: "/" + "/".join(names))


@settings(deadline=None)
@given(any_path)
def test_any_path_has_an_identity(path: str) -> None:
    identity = identify(path)
    assert identity.kind in KINDS
    assert identity.attributes.keys() <= ATTRIBUTES.keys()
    for value in identity.attributes.values():
        assert value
        value.encode("utf-8")


@settings(deadline=None)
@given(any_path)
def test_what_a_container_makes_within_itself_carries_its_attributes(path: str) -> None:
    parent, child = identify(path), identify(f"{path}/a b")
    assume(child.kind == "cgroup")
    of_the_parent_alone = {"systemd.slice.name", "systemd.unit.name"}
    kept = {key: value for key, value in parent.attributes.items() if key not in of_the_parent_alone}
    assert kept == {key: value for key, value in child.attributes.items() if key not in of_the_parent_alone}


@settings(deadline=None)
@given(any_path)
def test_a_tree_looks_the_same_from_within_a_container(path: str) -> None:
    alone, nested = identify(path), identify(f"/docker/{OUTER}{path}")
    assume(alone.kind != "root")
    assert nested.kind == alone.kind
    assert alone.attributes.items() <= nested.attributes.items()
    # Of several containers around it, only the nearest is told.
    nearer = {"cgroup.parent.container.id", "cgroup.parent.container.name"} & alone.attributes.keys()
    assert nearer or OUTER in nested.attributes.values()
