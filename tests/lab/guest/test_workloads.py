"""The workloads do what the other tests rely on, by the kernel's own count."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from tests.lab.guest.cgroups import Cgroup
from tests.lab.guest.workloads import MIB, Ended


def test_growth_is_charged_to_the_cgroup_and_its_ancestors(cgroup: Cgroup) -> None:
    middle, leaf = cgroup.nested("middle", "leaf")
    leaf.spawn().grow(32)
    for each in (leaf, middle, cgroup):
        assert each.number("memory.current") >= 32 * MIB


def test_burning_uses_cpu_time(cgroup: Cgroup) -> None:
    workload = cgroup.spawn()
    before = cgroup.flat("cpu.stat")["usage_usec"]
    workload.burn(0.2)
    assert cgroup.flat("cpu.stat")["usage_usec"] - before >= 200_000


def test_a_quota_throttles(cgroup: Cgroup) -> None:
    narrow = cgroup.child("narrow", cpu_max="10000 100000")
    narrow.spawn().burn(0.1)
    assert narrow.flat("cpu.stat")["nr_throttled"] > 0


def test_io_is_counted_for_the_disk(cgroup: Cgroup, disk: Path) -> None:
    workload = cgroup.spawn()
    workload.write(disk, 4)
    workload.read(disk, 2)
    number = disk.stat().st_rdev
    done = cgroup.keyed("io.stat")[f"{os.major(number)}:{os.minor(number)}"]
    assert (int(done["wbytes"]), int(done["rbytes"])) == (4 * MIB, 2 * MIB)


def test_forks_stop_at_the_pids_limit(cgroup: Cgroup) -> None:
    narrow = cgroup.child("narrow", pids_max=8)
    assert narrow.spawn().fork(20) == 7
    assert narrow.number("pids.current") == 8


def test_growth_past_the_limit_is_killed(cgroup: Cgroup) -> None:
    narrow = cgroup.child("narrow", memory_max="32M", memory_swap_max=0)
    with pytest.raises(Ended) as ended:
        narrow.spawn().grow(64)
    assert ended.value.returncode == -signal.SIGKILL
    assert narrow.await_events("memory.events", lambda events: events["oom_kill"] == 1)
