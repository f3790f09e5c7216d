"""A small host as a tree of files: one Docker container in a narrow slice, one service beside it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

MIB = 1 << 20

CONTAINER_ID = "3f" * 32
SLICE = "/system.slice"
CONTAINER = f"{SLICE}/docker-{CONTAINER_ID}.scope"
SERVICE = f"{SLICE}/web.service"

BOOTED_S = 1_700_000_000
HOST_ID = "0123456789abcdef0123456789abcdef"
HOST_NAME = "fixture-host"

_PRESSURE = (
    "some avg10=1.50 avg60=0.75 avg300=0.25 total={some}\n"
    "full avg10=0.50 avg60=0.25 avg300=0.10 total={full}\n"
)


def _pressure(some: int, full: int) -> str:
    return _PRESSURE.format(some=some, full=full)


_ROOT_FILES = {
    "cgroup.controllers": "cpuset cpu io memory pids\n",
    "cpu.stat": "usage_usec 90000000\nuser_usec 60000000\nsystem_usec 30000000\n",
}

_SLICE_FILES = {
    "cpu.stat": "usage_usec 8000000\nuser_usec 5500000\nsystem_usec 2500000\n"
    "nr_periods 500\nnr_throttled 90\nthrottled_usec 4750000\nnr_bursts 0\nburst_usec 0\n",
    "cpu.max": "150000 100000\n",
    "memory.current": f"{400 * MIB}\n",
    "memory.max": f"{512 * MIB}\n",
    "memory.high": "max\n",
}

_CONTAINER_FILES = {
    "cgroup.events": "populated 1\nfrozen 0\n",
    "cgroup.procs": "101\n102\n",
    "cgroup.stat": "nr_descendants 0\nnr_dying_descendants 0\n",
    "cpu.stat": "usage_usec 7500000\nuser_usec 5000000\nsystem_usec 2500000\n"
    "nr_periods 200\nnr_throttled 40\nthrottled_usec 1250000\nnr_bursts 2\nburst_usec 30000\n",
    "cpu.stat.local": "throttled_usec 6000000\n",
    "cpu.max": "max 100000\n",
    "cpu.weight": "79\n",
    "cpu.pressure": _pressure(3_500_000, 1_250_000),
    "memory.current": f"{300 * MIB}\n",
    "memory.peak": f"{350 * MIB}\n",
    "memory.max": f"{1024 * MIB}\n",
    "memory.high": "max\n",
    "memory.swap.current": "4096\n",
    "memory.swap.max": "max\n",
    "memory.stat": f"anon {180 * MIB}\nfile {100 * MIB}\nkernel {16 * MIB}\nsock 8192\nshmem 65536\n"
    f"inactive_file {60 * MIB}\nactive_file {40 * MIB}\nslab_reclaimable 12288\n"
    "pgfault 1000\npgmajfault 40\nworkingset_refault_file 7\n",
    "memory.events": "low 0\nhigh 3\nmax 12\noom 2\noom_kill 1\noom_group_kill 0\n",
    "memory.events.local": "low 0\nhigh 3\nmax 12\noom 2\noom_kill 1\noom_group_kill 0\n",
    "memory.pressure": _pressure(400_000, 300_000),
    "io.pressure": _pressure(900_000, 0),
    "io.stat": "8:0 rbytes=4096 wbytes=8192 rios=1 wios=2 dbytes=0 dios=0\n8:16 \n",
    "io.max": "8:0 rbps=2097152 wbps=max riops=max wiops=120\n",
    "pids.current": "17\n",
    "pids.max": "max\n",
    "pids.events": "max 5\n",
}

_SERVICE_FILES = {
    "cpu.stat": "usage_usec 500000\nuser_usec 300000\nsystem_usec 200000\n",
    "cpu.max": "50000 100000\n",
    "memory.current": f"{2 * MIB}\n",
    "pids.current": "3\n",
    "pids.max": "64\n",
}

UNWATCHED = "[restarts]\nenabled = false\n"
"""The kernel, the bus and the runtimes of the machine that tests are none of the tree's host."""

_PROC_FILES = {
    "stat": f"cpu  1 2 3 4 5 6 7 8 9 10\nbtime {BOOTED_S}\n"
    "processes 51670\nprocs_running 2\nprocs_blocked 1\n",
    "meminfo": "MemTotal:        8388608 kB\nMemFree:         1048576 kB\nMemAvailable:    6291456 kB\n"
    "Buffers:           32768 kB\nCached:          2097152 kB\nShmem:              4096 kB\n",
    "loadavg": "0.50 0.25 0.10 2/133 19202\n",
    "vmstat": "pgfault 5000\npgmajfault 60\npswpin 3\npswpout 4\noom_kill 2\n",
    "sys/kernel/random/boot_id": "0f54fd92-72a5-4a4a-8e5b-5a2c3b1d7e60\n",
    "pressure/cpu": _pressure(536_955_642, 0),
    "pressure/memory": _pressure(1_000_000, 250_000),
    "pressure/io": _pressure(2_000_000, 500_000),
}


class KernelTree:
    """The files, and the environment that leads the agent to them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        for name, content in _PROC_FILES.items():
            _write(folder / "proc" / name, content)
        _write(folder / "etc/hostname", f"{HOST_NAME}\n")
        _write(folder / "etc/machine-id", f"{HOST_ID}\n")
        _write(folder / "sys/devices/system/cpu/online", "0-3\n")
        disk = folder / "sys/dev/block/8:0"
        disk.parent.mkdir(parents=True)
        disk.symlink_to("../../block/sda")
        _write(folder / "etc/cgotel.toml", UNWATCHED)
        self.add("/", _ROOT_FILES)
        self.add(SLICE, _SLICE_FILES)
        self.add(CONTAINER, _CONTAINER_FILES)
        self.add(SERVICE, _SERVICE_FILES)

    @property
    def environment(self) -> dict[str, str]:
        """HOST_* variables for the agent, and a configuration in which nobody watches the real machine."""
        places = {"HOST_CGROUP": "cgroup", "HOST_PROC": "proc", "HOST_SYS": "sys", "HOST_ETC": "etc"}
        places |= {"CGOTEL_CONFIG": "etc/cgotel.toml"}
        return {variable: str(self._folder / place) for variable, place in places.items()}

    def path(self, cgroup: str, file: str = "") -> Path:
        """Where a cgroup, or one of its files, lies in this tree."""
        return self._folder / "cgroup" / cgroup.strip("/") / file

    def add(self, cgroup: str, files: Mapping[str, str]) -> None:
        """Make a cgroup with these files."""
        for name, content in files.items():
            _write(self.path(cgroup, name), content)

    def add_like(self, cgroup: str, model: str) -> None:
        """Make a cgroup whose files are those of another one, by hard links."""
        self.path(cgroup).mkdir()
        for file in self.path(model).iterdir():
            self.path(cgroup, file.name).hardlink_to(file)

    def change(self, cgroup: str, file: str, before: str, after: str) -> Path:
        """Write a text of the same length over another one, in place, as if the kernel counted on."""
        path = self.path(cgroup, file)
        content = path.read_text()
        assert content.count(before) == 1
        assert len(before) == len(after)
        with open(path, "r+b", buffering=0) as opened:
            os.pwrite(opened.fileno(), content.replace(before, after).encode(), 0)
        return path

    def remove(self, cgroup: str) -> None:
        """Remove a cgroup with all its files."""
        shutil.rmtree(self.path(cgroup))

    def began_ns(self, cgroup: str) -> int:
        """When a cgroup of this tree began: its directory's change time."""
        return self.path(cgroup).stat().st_ctime_ns


def _write(path: Path, content: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
