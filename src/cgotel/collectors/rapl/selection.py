"""Which zones are reported, so that their sum is true: no joule stands in two of them.

- ``core`` and ``uncore`` are parts of their package; ``dram`` is not; ``psys`` is around all of them.
- An mmio zone is the counter of the MSR zone of the same name.
- On AMD, ``core`` is one core's counter and not the package's; and older kernels list a package once
  for each of its dies, ``package-0-die-1``, every time with the whole package's counter.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Literal, TypeAlias

from cgotel.kernel.powercap import Zone

Role: TypeAlias = Literal["package", "memory", "host", "part"]

_PACKAGE = re.compile(r"package-(\d+)(?:-die-(\d+))?")
_PSYS = re.compile(r"psys(?:-\d+)?")
_PARTS = frozenset(("core", "uncore"))


def select(zones: Iterable[Zone], amd: bool, parts: bool) -> Iterator[tuple[Zone, Role]]:
    """The zones to report, each with what it measures; ``parts``: also those inside of packages."""
    zones = list(zones)
    known = {zone.id: zone for zone in zones}
    by_msr = {_place(zone, known) for zone in zones if not zone.mmio}
    packages: set[str] = set()
    for zone in sorted(zones, key=_order):
        role = _role(zone)
        if role is None or (zone.mmio and _place(zone, known) in by_msr):
            continue
        if role == "part" and (amd or not parts):
            continue
        if amd and (package := _PACKAGE.fullmatch(zone.name)):
            if package[1] in packages:
                continue
            packages.add(package[1])
        yield zone, role


def _role(zone: Zone) -> Role | None:
    if _PACKAGE.fullmatch(zone.name):
        return "package"
    if _PSYS.fullmatch(zone.name):
        return "host"
    if zone.name == "dram":
        return "memory"
    return "part" if zone.name in _PARTS else None


def _place(zone: Zone, known: dict[str, Zone]) -> tuple[str, str]:
    """What tells what a zone measures, whichever way it is reached."""
    parent = known.get(zone.parent or "")
    return zone.name, parent.name if parent else ""


def _order(zone: Zone) -> tuple[bool, list[int]]:
    return zone.mmio, [int(number) for number in re.findall(r"\d+", zone.id)]
