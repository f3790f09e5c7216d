"""Containers and virtual machines known by a name."""

import pytest

from cgotel.identity import Identity, identify

LXC = {"container.name": "web", "container.runtime.name": "lxc"}
VM_SCOPE = r"machine-qemu\x2d3\x2ddb\x2d1.scope"
VM = {
    "libvirt.domain.name": "db-1",
    "systemd.machine.name": "qemu-3-db-1",
    "systemd.unit.name": VM_SCOPE,
}
NSPAWN = {
    "container.name": "jammy",
    "container.runtime.name": "systemd-nspawn",
    "systemd.machine.name": "jammy",
    "systemd.unit.name": "systemd-nspawn@jammy.service",
}

SHAPES = {
    # lxc src/lxc/cgroups/cgroup.h
    "lxc": ("/lxc.payload.web", "container", LXC),
    "lxc, init of its systemd": (
        "/lxc.payload.web/init.scope",
        "scope",
        {**LXC, "systemd.unit.name": "init.scope"},
    ),
    "lxc, service in it": (
        "/lxc.payload.web/system.slice/nginx.service",
        "service",
        {**LXC, "systemd.unit.name": "nginx.service", "systemd.slice.name": "system.slice"},
    ),
    "lxc, monitor": ("/lxc.monitor.web", "cgroup", {}),
    "lxc, pivot": ("/lxc.pivot", "cgroup", {}),
    "incus project": ("/lxc.payload.lab_web", "container", {**LXC, "container.name": "lab_web"}),
    "lxc, unprivileged": (
        "/user.slice/user-1000.slice/user@1000.service/app.slice/lxc-web-0.scope/lxc.payload.web",
        "container",
        {**LXC, "user.id": "1000", "systemd.unit.name": "lxc-web-0.scope"},
    ),
    "lxc, relative to lxc": ("/lxc/lxc.payload.web", "container", LXC),
    "lxc, relative to lxc, monitor": ("/lxc/lxc.monitor.web", "cgroup", {}),
    "proxmox container": ("/lxc/101", "container", {**LXC, "container.name": "101"}),
    "proxmox container, its namespace": ("/lxc/101/ns", "cgroup", {**LXC, "container.name": "101"}),
    "proxmox container, monitor": ("/lxc.monitor/101", "cgroup", {}),
    "proxmox machine": (
        "/qemu.slice/113.scope",
        "machine",
        {"proxmox.vm.id": "113", "systemd.unit.name": "113.scope", "systemd.slice.name": "qemu.slice"},
    ),
    # systemd src/nspawn/nspawn-cgroup.c
    "nspawn": (
        "/machine.slice/systemd-nspawn@jammy.service",
        "container",
        {**NSPAWN, "systemd.slice.name": "machine.slice"},
    ),
    "nspawn, payload": ("/machine.slice/systemd-nspawn@jammy.service/payload", "cgroup", NSPAWN),
    "nspawn, supervisor": ("/machine.slice/systemd-nspawn@jammy.service/supervisor", "cgroup", NSPAWN),
    "nspawn, service in it": (
        "/machine.slice/systemd-nspawn@jammy.service/payload/system.slice/cron.service",
        "service",
        {**NSPAWN, "systemd.unit.name": "cron.service", "systemd.slice.name": "system.slice"},
    ),
    "nspawn, escaped": (
        r"/machine.slice/systemd-nspawn@my\x2dbox.service",
        "container",
        {
            "container.name": "my-box",
            "container.runtime.name": "systemd-nspawn",
            "systemd.machine.name": "my-box",
            "systemd.unit.name": r"systemd-nspawn@my\x2dbox.service",
            "systemd.slice.name": "machine.slice",
        },
    ),
    "nixos container": (
        "/machine.slice/container@media-01.service",
        "container",
        {
            "container.name": "media-01",
            "container.runtime.name": "systemd-nspawn",
            "systemd.machine.name": "media-01",
            "systemd.unit.name": "container@media-01.service",
            "systemd.slice.name": "machine.slice",
        },
    ),
    "not a nixos container": (
        "/system.slice/container@web.service",
        "service",
        {"systemd.unit.name": "container@web.service", "systemd.slice.name": "system.slice"},
    ),
    "vmspawn": (
        "/machine.slice/systemd-vmspawn@vm.service",
        "machine",
        {
            "systemd.machine.name": "vm",
            "systemd.unit.name": "systemd-vmspawn@vm.service",
            "systemd.slice.name": "machine.slice",
        },
    ),
    "known to machined only": (
        r"/machine.slice/machine-build\x2dbox.scope",
        "machine",
        {
            "systemd.machine.name": "build-box",
            "systemd.unit.name": r"machine-build\x2dbox.scope",
            "systemd.slice.name": "machine.slice",
        },
    ),
    # libvirt docs/cgroups.rst
    "libvirt, qemu": (
        f"/machine.slice/{VM_SCOPE}",
        "machine",
        {**VM, "systemd.slice.name": "machine.slice"},
    ),
    "libvirt, qemu, a processor": (f"/machine.slice/{VM_SCOPE}/libvirt/vcpu0", "cgroup", VM),
    "libvirt, lxc": (
        r"/machine.slice/machine-lxc\x2d12345\x2ddemo.scope",
        "container",
        {
            "container.name": "demo",
            "container.runtime.name": "libvirt",
            "libvirt.domain.name": "demo",
            "systemd.machine.name": "lxc-12345-demo",
            "systemd.unit.name": r"machine-lxc\x2d12345\x2ddemo.scope",
            "systemd.slice.name": "machine.slice",
        },
    ),
    "libvirt without systemd": (
        "/machine/qemu-1-instance-00000001.libvirt-qemu/emulator",
        "cgroup",
        {"libvirt.domain.name": "instance-00000001"},
    ),
    "libvirt without systemd, lxc": (
        "/machine/production.partition/lxc-2-demo.libvirt-lxc",
        "container",
        {"container.name": "demo", "container.runtime.name": "libvirt", "libvirt.domain.name": "demo"},
    ),
}


@pytest.mark.parametrize(("path", "kind", "attributes"), SHAPES.values(), ids=SHAPES)
def test_machines(path: str, kind: str, attributes: dict[str, str]) -> None:
    assert identify(path) == Identity(kind, attributes)
