"""The real collectd with cgotel in its Python plugin, as real memory, io and pids controllers feed it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from tests.lab.guest.cgroups import Cgroup
from tests.lab.guest.sweeps import raw
from tests.lab.guest.workloads import Ended
from tests.peers.collectd_process import Collectd

MIB = 1 << 20
FAILURE = 1
LIMIT_S = 150

pytestmark = pytest.mark.timeout(300)

# Of what collectd gets: the kernel's file and key, and how many of its units make one of collectd's.
VALUES = {
    ("ps_cputime", "user"): ("cpu.stat.user_usec", 1),
    ("ps_cputime", "syst"): ("cpu.stat.system_usec", 1),
    ("memory-used", "value"): ("memory.current", 1),
    ("memory-peak", "value"): ("memory.peak", 1),
    ("memory-limit", "value"): ("memory.max", 1),
    ("memory-high", "value"): ("memory.high", 1),
    ("memory-anon", "value"): ("memory.stat.anon", 1),
    ("memory-slab", "value"): ("memory.stat.slab", 1),
    ("vmpage_action-thp-fault", "value"): ("memory.stat.thp_fault_alloc", 1),
    ("derive-memory_event-oom_kill", "value"): ("memory.events.oom_kill", 1),
    ("derive-pids_event-max", "value"): ("pids.events.max", 1),
    ("gauge-pids", "value"): ("pids.current", 1),
    ("gauge-pids_limit", "value"): ("pids.max", 1),
    ("disk_octets-{disk}", "write"): ("io.stat.{number}.wbytes", 1),
    ("disk_octets-{disk}", "read"): ("io.stat.{number}.rbytes", 1),
    ("disk_ops-{disk}", "write"): ("io.stat.{number}.wios", 1),
    ("total_time_in_ms-psi-cpu-some", "value"): ("cpu.pressure.some.total", 1000),
    ("total_time_in_ms-psi-io-full", "value"): ("io.pressure.full.total", 1000),
}


def test_values_are_those_of_the_kernels_files(cgroup: Cgroup, disk: Path, tmp_path: Path) -> None:
    outer = cgroup.child("outer", cpu_max="50000 100000", memory_max="128M")
    leaf = outer.child("leaf", memory_max="256M", memory_high="200M", pids_max=50)
    workload = leaf.spawn()
    workload.grow(16)
    workload.write(disk, 2)
    workload.read(disk, 1)
    workload.burn(0.1)
    leaf.write("cgroup.freeze", 1)  # so that amounts stand still
    leaf.await_events("cgroup.events", lambda events: events["frozen"] == 1)
    options = ("SlowInterval 1", f'Include "{cgroup.name}/**"', f'Include "{cgroup.name}"')
    with Collectd(
        tmp_path / "collectd", {}, *options, interval=1, settings=None, limit_s=LIMIT_S
    ) as collectd:
        before = raw(leaf.path)
        plugin = f"cgotel-lab.service~{cgroup.path.name}~outer~leaf"
        rows = {
            name: collectd.rows(f"{plugin}/{name.format(disk=disk.name)}", lambda rows: len(rows) >= 2)[-1]
            for name, _ in VALUES
        }
        names = collectd.names()
        after = raw(leaf.path)
        effective = collectd.rows(f"{plugin}/memory-effective_limit")[-1]["value"]
        owner = f"lab.service~{cgroup.path.name}~outer"
        throttled = collectd.rows(f"{plugin}/total_time_in_ms-cpu-throttled-by-{owner}")[-1]["value"]
        assert collectd.stop() == 0
    number = disk.stat().st_rdev
    device = f"{os.major(number)}:{os.minor(number)}"
    for (name, source), (file_and_key, scale) in VALUES.items():
        key = file_and_key.format(number=device)
        low, high = sorted((before[key], after[key]))
        assert low // scale <= rows[name][source] <= high // scale, name
    assert rows["disk_octets-{disk}"]["write"] >= 2 * MIB
    assert effective == 128 * MIB
    assert 0 < throttled <= outer.flat("cpu.stat")["throttled_usec"] / 1000
    assert names.isdisjoint({f"{plugin}/memory-swap_limit", f"{plugin}/gauge-cpu_limit"})  # without a limit
    assert collectd.errors == []


def test_an_oom_kill_is_a_notification(cgroup: Cgroup, tmp_path: Path) -> None:
    leaf = cgroup.child("leaf", memory_max="32M", memory_swap_max=0)
    workload = leaf.spawn()
    with Collectd(
        tmp_path / "collectd", {}, f'Include "{leaf.name}"', interval=1, settings=None, limit_s=LIMIT_S
    ) as collectd:
        collectd.rows(f"cgotel-lab.service~{cgroup.path.name}~leaf/memory-used")
        with pytest.raises(Ended):
            workload.grow(64)
        seen = collectd.observed("notifications", lambda found: kills(found, leaf))
        assert collectd.stop() == 0
    [kill, *_] = kills(seen, leaf)
    assert (kill["plugin"], kill["severity"]) == ("cgotel", FAILURE)
    assert kill["message"].startswith("the kernel's OOM killer ")


def kills(notifications: list[dict[str, Any]], cgroup: Cgroup) -> list[dict[str, Any]]:
    """Those of OOM kills in a cgroup; the kernel's log may hold those of other tests."""
    found = [each for each in notifications if each["type_instance"] == "cgotel.oom.kill"]
    return [each for each in found if each["meta"].get("process.linux.cgroup") == f"0::{cgroup.name}"]
