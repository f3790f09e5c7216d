"""Where the kernel's file systems are mounted: on a host, inside a container, in a test's tree."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

_OCTAL_ESCAPES = {"\\040": " ", "\\011": "\t", "\\012": "\n", "\\134": "\\"}


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
            return cls(proc, sys, chosen)
        for candidate in (f"{sys}/fs/cgroup", f"{sys}/fs/cgroup/unified"):
            if os.path.exists(f"{candidate}/cgroup.controllers"):
                return cls(proc, sys, candidate, hybrid=candidate.endswith("/unified"))
        mounted = _cgroup2_mount(f"{proc}/self/mounts")
        return cls(proc, sys, mounted and root + mounted)


def _cgroup2_mount(mounts_file: str) -> str | None:
    """The first cgroup2 mount point of a mounts file: ``cgroup2 /mnt/cg cgroup2 rw 0 0``."""
    try:
        with open(mounts_file, encoding="utf-8", errors="surrogateescape") as mounts:
            for line in mounts:
                fields = line.split(" ")
                if len(fields) > 2 and fields[2] == "cgroup2":
                    return _unescape(fields[1])
    except OSError:
        return None
    return None


def _unescape(mount_point: str) -> str:
    for escape, plain in _OCTAL_ESCAPES.items():
        mount_point = mount_point.replace(escape, plain)
    return mount_point
