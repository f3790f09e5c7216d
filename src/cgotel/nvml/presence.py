"""What files say of NVIDIA's driver and its GPUs, without waking any.

A query wakes a GPU that sleeps (5 to 25 W in a laptop); /sys/bus/pci/devices/ADDRESS/power/runtime_status
does not (power/runtime_pm.rst).
"""

from __future__ import annotations

import os
import re
from typing import NamedTuple

from cgotel.kernel.files import read_once

_NVIDIA = "0x10de"
_DISPLAYS = ("0x0300", "0x0302")
_VERSION = re.compile(r" (\d{3,4}(?:\.\d+)+) ")


class Card(NamedTuple):
    """A GPU as PCI lists it: ``0000:3b:00.0``, whether it sleeps, and whether it may."""

    address: str
    asleep: bool
    may_sleep: bool


def driver_version(proc: str) -> str | None:
    """The loaded driver's version, ``""`` where it tells none; None where no driver is loaded."""
    try:
        content = read_once(f"{proc}/driver/nvidia/version").decode("utf-8", "replace")
    except OSError:
        return None
    found = _VERSION.search(content)
    return found[1] if found else ""


def cards(sys: str) -> list[Card]:
    """NVIDIA's GPUs on the PCI bus, by address."""
    directory = f"{sys}/bus/pci/devices"
    try:
        addresses = sorted(os.listdir(directory))
    except OSError:
        return []
    return [
        Card(
            address,
            _line(f"{directory}/{address}/power/runtime_status") == "suspended",
            _line(f"{directory}/{address}/power/control") == "auto",
        )
        for address in addresses
        if _line(f"{directory}/{address}/vendor") == _NVIDIA
        and _line(f"{directory}/{address}/class").startswith(_DISPLAYS)
    ]


def is_released(release_file: str) -> bool:
    """Whether somebody asks for the GPUs by making this file."""
    return bool(release_file) and os.path.exists(release_file)


def short_address(bus_id: str) -> str:
    """``00000000:3B:00.0``, as NVML writes it, as the kernel does: ``0000:3b:00.0``."""
    domain, _, rest = bus_id.lower().partition(":")
    return f"{domain[-4:]}:{rest}" if rest and domain[:-4].strip("0") == "" else bus_id.lower()


def _line(path: str) -> str:
    try:
        return read_once(path).decode("ascii", "replace").strip()
    except OSError:
        return ""
