"""The machine itself: the resource attributes that every entity of it shares, and its own entity."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from cgotel.kernel import topology
from cgotel.kernel.files import read_once
from cgotel.kernel.roots import Roots
from cgotel.model import Entity

# model/host: the names of host.arch where they are not the kernel's own (uname -m)
_ARCHITECTURES = {
    "aarch64": "arm64",
    "armv6l": "arm32",
    "armv7l": "arm32",
    "armv8l": "arm32",
    "i386": "x86",
    "i486": "x86",
    "i586": "x86",
    "i686": "x86",
    "ppc": "ppc32",
    "ppc64le": "ppc64",
    "x86_64": "amd64",
}

_MACHINE_ID = re.compile(r"[0-9a-f]{32}")
_PRETTY_NAME = re.compile(r"""^PRETTY_NAME=(["']?)(.*)\1$""", re.MULTILINE)


def host_attributes(roots: Roots, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """host.name, host.id, host.arch, os.type and os.description; what cannot be read is left out.

    host.id is /etc/machine-id (machine-id(5)), or the boot's id where a machine has none. With
    HOST_ETC or HOST_ROOT set, or a /proc that is not the agent's own, it is the host's and not that
    of the container around the agent.
    """
    etc = _etc(roots, environ)
    found = {
        "host.name": _host_name(roots, etc),
        "host.id": _machine_id(etc) or _line(f"{roots.proc}/sys/kernel/random/boot_id"),
        "host.arch": _architecture(),
        "os.type": "linux",
        "os.description": _pretty_name(etc),
    }
    return {name: value for name, value in found.items() if value}


def host_entity(roots: Roots, environ: Mapping[str, str] = os.environ) -> Entity:
    """The host as an entity, the same for every collector that has something to say of it."""
    attributes = host_attributes(roots, environ)
    key = attributes.get("host.id") or attributes.get("host.name", "")
    return Entity("host", key, attributes, topology.boot_time_ns(roots.proc))


def _etc(roots: Roots, environ: Mapping[str, str]) -> str:
    if chosen := environ.get("HOST_ETC"):
        return chosen
    if root := environ.get("HOST_ROOT", "").rstrip("/"):
        return f"{root}/etc"
    return "/etc" if roots.proc == "/proc" else f"{roots.proc}/1/root/etc"


def _host_name(roots: Roots, etc: str) -> str:
    """The kernel's answer is that of the reader's own UTS namespace, so the host's file goes first."""
    kernel = f"{roots.proc}/sys/kernel/hostname"
    return _line(kernel) if etc == "/etc" else _line(f"{etc}/hostname") or _line(kernel)


def _machine_id(etc: str) -> str:
    """A machine that starts for the first time may have an empty file, or say `uninitialized`."""
    machine_id = _line(f"{etc}/machine-id")
    return machine_id if _MACHINE_ID.fullmatch(machine_id) else ""


def _architecture() -> str:
    machine = os.uname().machine
    return _ARCHITECTURES.get(machine, machine)


def _pretty_name(etc: str) -> str:
    found = _PRETTY_NAME.search(_text(f"{etc}/os-release"))
    return found[2] if found else ""


def _line(path: str) -> str:
    return _text(path).partition("\n")[0].strip()


def _text(path: str) -> str:
    try:
        return read_once(path).decode("utf-8", "replace")
    except OSError:
        return ""
