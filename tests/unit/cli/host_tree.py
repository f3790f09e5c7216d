"""A host as a tree of files: a container in a pod with the narrower limits, and services beside it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

GIB = 2**30
CONTAINER_ID = "3f4e5d6c7b8a" + "0" * 52
POD = "/kubepods.slice/kubepods-pod8f0e7c52_41d3_4b1a_9a6f_2c2b6f6e1d11.slice"
CONTAINER = f"{POD}/cri-containerd-{CONTAINER_ID}.scope"
SERVICE = "/system.slice/web.service"

CONTROLLERS = "cpuset cpu io memory hugetlb pids rdma misc dmem\n"


def pressure(some: int, full: int = 0) -> str:
    """A pressure file with these totals, in microseconds."""
    lines = (("some", some), ("full", full))
    return "".join(f"{kind} avg10=0.00 avg60=0.00 avg300=0.00 total={total}\n" for kind, total in lines)


_FILES = {
    "cgroup.controllers": CONTROLLERS,
    "cgroup.subtree_control": CONTROLLERS,
    "cgroup.procs": "",
    "cgroup.pressure": "1\n",
    "cpu.pressure": pressure(2_000_000),
    "memory.pressure": pressure(1_000_000, 500_000),
    "io.pressure": pressure(0),
    "io.stat": "8:0 rbytes=4096 wbytes=8192 rios=1 wios=2 dbytes=0 dios=0\n",
    "cpu.stat": "usage_usec 3000000\nuser_usec 2000000\nsystem_usec 1000000\n"
    "nr_periods 100\nnr_throttled 40\nthrottled_usec 900000\n",
}

_BELOW_THE_ROOT = {
    "cgroup.type": "domain\n",
    "cgroup.events": "populated 1\nfrozen 0\n",
    "cpu.max": "max 100000\n",
    "memory.current": f"{GIB}\n",
    "memory.peak": f"{GIB}\n",
    "memory.max": "max\n",
    "memory.high": "max\n",
    "memory.events.local": "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\noom_group_kill 0\n",
    "pids.current": "7\n",
    "pids.max": "max\n",
}

_HOST = {
    "proc/cmdline": "BOOT_IMAGE=/vmlinuz quiet\n",
    "proc/cgroups": "#subsys_name\thierarchy\tnum_cgroups\tenabled\nmemory\t0\t9\t1\nblkio\t0\t9\t1\n",
    "proc/meminfo": "MemTotal:        8388608 kB\nMemAvailable:    6291456 kB\nMemFree:   1048576 kB\n",
    "proc/stat": "cpu  1 2 3 4 5 6 7 8 9 10\nbtime 1700000000\nprocesses 5\nprocs_running 2\n",
    "proc/swaps": "Filename\tType\tSize\tUsed\tPriority\n/dev/vdb\tpartition\t4194300\t0\t-2\n",
    "proc/pressure/cpu": pressure(2_000_000),
    "proc/pressure/memory": pressure(1_000_000, 500_000),
    "proc/pressure/io": pressure(0),
    "sys/devices/system/cpu/online": "0-3\n",
}


class HostTree:
    """The files, and the environment that leads a command to them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.mount = folder / "sys/fs/cgroup"
        for name, content in _HOST.items():
            self.write(name, content)
        self.cgroup("/")
        self.cgroup("/system.slice")
        self.cgroup(SERVICE, {"cgroup.procs": "10\n", "memory.max": f"{4 * GIB}\n"})
        self.cgroup("/kubepods.slice")
        self.cgroup(POD, {"memory.max": f"{2 * GIB}\n", "cpu.max": "50000 100000\n"})
        self.cgroup(CONTAINER, {"cgroup.procs": "11\n12\n", "memory.max": f"{8 * GIB}\n"})

    @property
    def environment(self) -> dict[str, str]:
        """HOST_* variables over this process's own environment.

        Nobody watches: the kernel, the bus and the runtimes of the real machine are none of this host.
        """
        places = {"HOST_PROC": str(self.folder / "proc"), "HOST_SYS": str(self.folder / "sys")}
        config = self.write("cgotel.toml", "[restarts]\nenabled = false\n")
        return {**os.environ, **places, "TZ": "UTC", "CGOTEL_CONFIG": str(config)}

    def write(self, name: str, content: str) -> Path:
        """A file of the host."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        return path

    def cgroup(self, path: str, files: Mapping[str, str | None] | None = None) -> None:
        """Make a cgroup, or change files of one; None takes a file away."""
        folder = self.mount / path.strip("/")
        if not folder.exists():
            below = {} if path == "/" else _BELOW_THE_ROOT
            files = {**_FILES, **below, **(files or {})}
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in (files or {}).items():
            if content is None:
                (folder / name).unlink()
            else:
                (folder / name).write_text(content)
