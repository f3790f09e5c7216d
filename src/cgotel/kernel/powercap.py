"""Energy counters of RAPL zones (power/powercap/powercap.rst, drivers/powercap/intel_rapl_common.c).

    /sys/class/powercap/intel-rapl:0/name                  package-0
    /sys/class/powercap/intel-rapl:0/energy_uj             76133219
    /sys/class/powercap/intel-rapl:0/max_energy_range_uj   262143328850
    /sys/class/powercap/intel-rapl:0:2/name                dram

All zones stand side by side there, and those of other control types (dtpm, arm-scmi) beside them. A
zone's number is not that of a socket: its name says what it measures. energy_uj can be read by root
alone since Linux 5.10 (CVE-2020-8694).
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from cgotel.kernel.files import read_once
from cgotel.kernel.formats import whole

_ZONE = re.compile(r"(intel-rapl(?:-mmio)?):(\d{1,5})(?::(\d{1,5}))?")
_NAME = re.compile(r"[a-z0-9_-]{1,64}")
_VENDOR = re.compile(rb"^vendor_id\s*:\s*(\S+)", re.MULTILINE)
_AMD = frozenset((b"AuthenticAMD", b"HygonGenuine"))


@dataclass(frozen=True, slots=True)
class Zone:
    """One zone: ``id`` is its directory's name, ``parent`` that of the zone around it.

    ``mmio``: the same counter as an MSR zone of that name, reached another way. ``range_uj`` is where
    the counter begins anew, in microjoules; None where that cannot be read.
    """

    id: str
    name: str
    parent: str | None
    mmio: bool
    range_uj: int | None


def zone_ids(sys: str) -> list[str]:
    """Names of the RAPL zones that are listed, whether or not they can be entered."""
    try:
        names = os.listdir(f"{sys}/class/powercap")
    except OSError:
        return []
    return sorted(name for name in names if _ZONE.fullmatch(name))


def zone(sys: str, zone_id: str) -> Zone:
    """A listed zone.

    Raises `FileNotFoundError` for a link into a part of /sys that is hidden or gone, any other
    OSError as reading does, and ValueError for a name that no kernel gives.
    """
    found = _ZONE.fullmatch(zone_id)
    if found is None:
        raise ValueError(f"{zone_id!r} is no RAPL zone")
    directory = f"{sys}/class/powercap/{zone_id}"
    name = read_once(f"{directory}/name").decode("ascii", "replace").strip()
    if not _NAME.fullmatch(name):
        raise ValueError("its name cannot be read")
    try:
        range_uj = whole(read_once(f"{directory}/max_energy_range_uj").strip())
    except OSError:
        range_uj = None
    parent = f"{found[1]}:{found[2]}" if found[3] else None
    return Zone(zone_id, name, parent, found[1].endswith("-mmio"), range_uj or None)


def energy_uj(sys: str, zone_id: str) -> int:
    """The counter in microjoules. Raises OSError, and ValueError where it holds no number."""
    number = whole(read_once(f"{sys}/class/powercap/{zone_id}/energy_uj").strip())
    if number is None:
        raise ValueError("energy_uj holds no number")
    return number


def is_amd(proc: str) -> bool:
    """Whether /proc/cpuinfo names AMD, or Hygon, whose processors are alike."""
    try:
        found = _VENDOR.search(read_once(f"{proc}/cpuinfo"))
    except OSError:
        return False
    return found is not None and found[1] in _AMD
