"""The machine is the one that the other tests are written for."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import pytest
from tests.lab.guest.cgroups import MOUNT, Cgroup


def test_the_kernel_is_the_one_asked_for(kernel: str) -> None:
    assert platform.release().startswith(f"{kernel}.")


def test_controllers_reach_the_tests(cgroup: Cgroup) -> None:
    assert cgroup.words("cgroup.controllers") >= {"cpu", "cpuset", "io", "memory", "pids"}


def test_cgroup_v2_is_the_only_hierarchy() -> None:
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    assert [mount for _, mount, kind, *_ in mounts if kind.startswith("cgroup")] == [str(MOUNT)]


@pytest.mark.parametrize("resource", ["cpu", "io", "memory"])
def test_pressure_is_measured(cgroup: Cgroup, resource: str) -> None:
    assert "some avg10=" in Path("/proc/pressure", resource).read_text()
    assert set(cgroup.keyed(f"{resource}.pressure")) == {"some", "full"}


def test_there_are_two_numa_nodes() -> None:
    assert Path("/sys/devices/system/node/online").read_text() == "0-1\n"


def test_the_disk_is_virtio_and_empty(disk: Path) -> None:
    with open(disk, "rb") as opened:
        assert opened.seek(0, os.SEEK_END) == 256 << 20
    assert (Path("/sys/class/block", disk.name) / "device/driver").resolve().name == "virtio_blk"


def test_there_is_swap() -> None:
    assert len(Path("/proc/swaps").read_text().splitlines()) == 2


@pytest.mark.kernel_file("cpu.stat.local", since="6.6")
def test_throttling_by_ancestors_is_counted(cgroup: Cgroup) -> None:
    assert "throttled_usec" in cgroup.flat("cpu.stat.local")
