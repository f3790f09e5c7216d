"""cgotel in a few lines of Python: one cgroup, or all of them, read now."""

from __future__ import annotations

import os

from cgotel.clock import now
from cgotel.collectors.cgroup import CgroupCollector, CgroupConfig
from cgotel.contract import Tick
from cgotel.kernel.roots import Roots
from cgotel.model import Reading


def snapshot(roots: Roots | None = None) -> list[Reading]:
    """A reading of every cgroup, parents before their children.

    Raises `Unavailable` where no cgroup v2 hierarchy is mounted. Needs no rights.
    """
    return _read(CgroupConfig(), roots or Roots.discover())


def read(name: str, roots: Roots | None = None) -> Reading:
    """One cgroup, by its path from the cgroup root, its unit's name, or its container's id.

    A container id may be shortened as long as it is the only one that begins so. Raises
    `LookupError` where none or several match, `Unavailable` where there is no cgroup v2.
    """
    roots = roots or Roots.discover()
    found = [r for r in snapshot(roots) if _is_called(r, name)]
    if len(found) > 1:
        found = [reading for reading in found if "container.id" in reading.entity.attributes] or found
        shortest = min(len(_path(reading)) for reading in found)
        found = [reading for reading in found if len(_path(reading)) == shortest]
    if len(found) != 1:
        raise LookupError(f"{len(found) or 'no'} cgroups are called {name!r}")
    return found[0]


def _read(config: CgroupConfig, roots: Roots) -> list[Reading]:
    collector = CgroupCollector(config, roots)
    try:
        collector.start()
        return list(collector.collect(Tick(*now())))
    finally:
        collector.close()


def _is_called(reading: Reading, name: str) -> bool:
    path = _path(reading)
    if name.startswith("/"):
        return path == (os.path.normpath(name))
    if path.rpartition("/")[2] == name:
        return True
    container_id = reading.entity.attributes.get("container.id")
    return isinstance(container_id, str) and len(name) >= 4 and container_id.startswith(name)


def _path(reading: Reading) -> str:
    return str(reading.entity.attributes["process.linux.cgroup"]).removeprefix("0::")
