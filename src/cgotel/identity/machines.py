"""Containers and virtual machines that are known by a name: LXC, systemd-nspawn, libvirt, Proxmox."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from cgotel.identity.facts import (
    CONTAINER_NAME,
    CONTAINER_RUNTIME,
    DOMAIN_NAME,
    MACHINE_NAME,
    NOTHING,
    PROXMOX_VM_ID,
    UNIT_NAME,
    Found,
)
from cgotel.identity.paths import unescaped

_MACHINE_SCOPE = re.compile(r"machine-(.+)\.scope")
_SPAWNED = re.compile(r"(systemd-nspawn|systemd-vmspawn|container)@(.+)\.service")
_PROXMOX_VM = re.compile(r"([0-9]+)\.scope")
_LIBVIRT_DOMAIN = re.compile(r"(qemu|ch|lxc)-[0-9]+-(.+)", re.DOTALL)
_LIBVIRT_DIRECTORY = re.compile(r"(.+)\.libvirt-(?:qemu|ch|lxc)")


def scope(name: str, above: Sequence[str]) -> Found | None:
    """``machine-<name>.scope``, registered with systemd-machined; ``qemu.slice/<vmid>.scope`` of Proxmox.

    machined's name tells neither container nor virtual machine; libvirt puts its driver before it.
    """
    match = _MACHINE_SCOPE.fullmatch(name)
    if match is not None:
        machine_name = unescaped(match[1])
        around = {MACHINE_NAME: machine_name, UNIT_NAME: name}
        return _domain(machine_name, around) or Found("machine", around)
    match = _PROXMOX_VM.fullmatch(name) if above[-1:] == ["qemu.slice"] else None
    return None if match is None else Found("machine", {PROXMOX_VM_ID: match[1], UNIT_NAME: name})


def service(name: str, above: Sequence[str]) -> Found | None:
    """``systemd-nspawn@<name>.service``, ``systemd-vmspawn@…``; NixOS's ``container@…`` is the former."""
    match = _SPAWNED.fullmatch(name)
    if match is None:
        return None
    spawner, machine_name = match[1], unescaped(match[2])
    around = {MACHINE_NAME: machine_name, UNIT_NAME: name}
    if spawner == "systemd-vmspawn":
        return Found("machine", around)
    if spawner == "container" and above[-1:] != ["machine.slice"]:
        return None
    return _named_container(machine_name, "systemd-nspawn", around)


def lxc(name: str, above: Sequence[str]) -> Found | None:
    """``lxc.payload.<name>`` (LXC, LXD, Incus), ``lxc/<name>`` (Proxmox, LXC before version 4).

    ``lxc.monitor.<name>`` holds the monitor alone. LXC appends ``-1`` and so on to a name that is
    still taken by a cgroup left behind.
    """
    container_name = name.removeprefix("lxc.payload.")
    if container_name == name and (above[-1:] != ["lxc"] or name.startswith("lxc.")):
        return None
    return _named_container(container_name, "lxc") if container_name else None


def libvirt(name: str, above: Sequence[str]) -> Found | None:
    """``machine/qemu-1-<name>.libvirt-qemu``: libvirt on a host without systemd."""
    match = _LIBVIRT_DIRECTORY.fullmatch(name)
    return None if match is None else _domain(match[1], NOTHING)


def _domain(machine_name: str, around: Mapping[str, str]) -> Found | None:
    match = _LIBVIRT_DOMAIN.fullmatch(machine_name)
    if match is None:
        return None
    around = {DOMAIN_NAME: match[2], **around}
    return _named_container(match[2], "libvirt", around) if match[1] == "lxc" else Found("machine", around)


def _named_container(name: str, runtime: str, around: Mapping[str, str] = NOTHING) -> Found:
    return Found("container", {CONTAINER_NAME: name, CONTAINER_RUNTIME: runtime, **around})
