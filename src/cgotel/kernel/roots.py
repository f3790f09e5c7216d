"""Where the kernel's file systems are mounted: on a host, inside a container, in a test's tree."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

from cgotel.kernel.files import read_once

_UNIFIED = "/unified"
_ESCAPE = re.compile(r"\\([0-3][0-7]{2})")  # fs/proc_namespace.c: space, tab, newline and backslash


@dataclass(frozen=True, slots=True)
class Roots:
    """Absolute paths of /proc, /sys and the cgroup v2 mount (None: there is none).

    ``hybrid`` is true where controllers live on cgroup v1 and the v2 hierarchy stands beside them
    (``/sys/fs/cgroup/unified``), so that v2 has core and pressure files only.
    """

    proc: str = "/proc"
    sys: str = "/sys"
    cgroup: str | None = "/sys/fs/cgroup"
    hybrid: bool = False

    @classmethod
    def discover(cls, environ: Mapping[str, str] = os.environ) -> Roots:
        """Find the mounts, honouring HOST_PROC, HOST_SYS, HOST_ROOT and HOST_CGROUP as Telegraf does.

        Source: proc(5), /proc/self/mounts. With HOST_SYS or HOST_ROOT set (an agent in a container
        with the host's trees bind-mounted), the mount points are looked up below them.
        """
        root = environ.get("HOST_ROOT", "").rstrip("/")
        proc = environ.get("HOST_PROC") or f"{root}/proc"
        sys = environ.get("HOST_SYS") or f"{root}/sys"
        if chosen := environ.get("HOST_CGROUP"):
            return cls(proc, sys, chosen, chosen.rstrip("/").endswith(_UNIFIED))
        for candidate in (f"{sys}/fs/cgroup", f"{sys}/fs/cgroup{_UNIFIED}"):
            if _is_cgroup2(candidate):
                return cls(proc, sys, candidate, candidate.endswith(_UNIFIED))
        mounts = _mounts(f"{proc}/self/mounts")
        found = [_below(root, point) for point, kind, _ in mounts if kind == "cgroup2"]
        mounted = next(filter(_is_cgroup2, found), found[0] if found else None)
        return cls(proc, sys, mounted, any(kind == "cgroup" for _, kind, _ in mounts))


def cgroup_options(proc: str) -> frozenset[str]:
    """Mount options of the cgroup v2 hierarchy, ``memory_localevents`` among them.

    They belong to the hierarchy, so that every mount of it shows the same (kernel/cgroup/cgroup.c,
    cgroup_show_options). Empty where there is no such mount, or where nobody may look.
    """
    options = [options for _, kind, options in _mounts(f"{proc}/self/mounts") if kind == "cgroup2"]
    return frozenset(options[0].split(",")) if options else frozenset()


def _is_cgroup2(directory: str) -> bool:
    return os.path.exists(f"{directory}/cgroup.controllers")


def _below(root: str, point: str) -> str:
    """A mount point as it is reached here: in a container's own view it lies below the root already."""
    return point if point.startswith(f"{root}/") else root + point


def _mounts(file: str) -> list[tuple[str, str, str]]:
    """Mount points, file system types and options of a mounts file: ``cgroup2 /mnt/cg cgroup2 rw 0 0``."""
    try:
        lines = os.fsdecode(read_once(file)).split("\n")
    except OSError:
        return []
    fields = [line.split(" ") for line in lines]
    return [(_ESCAPE.sub(_unescaped, f[1]), f[2], f[3]) for f in fields if len(f) > 3]


def _unescaped(octal: re.Match[str]) -> str:
    return chr(int(octal[1], 8))
