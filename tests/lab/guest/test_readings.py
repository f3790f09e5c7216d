"""What the collectors say is what the files say, in the same moment, key by key."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.lab.guest.cgroups import MOUNT, Cgroup
from tests.lab.guest.sweeps import Sweeps, raw

from cgotel.collectors.host import HostCollector
from cgotel.collectors.pressure import PressureCollector
from cgotel.kernel.roots import Roots
from cgotel.model import Reading
from cgotel.testing import sweep

# What the kernel prints and no row reports: said here, so that a new key is noticed.
UNREPORTED = {"cpu.stat": {"usage_usec"}}  # the sum of user_usec and system_usec


def assert_between(reading, before, after):
    """Every counter lies between what the file said before and after; an amount at rest is that amount."""
    compared = 0
    for series, value in reading.points:
        low, high = before.get(series.source), after.get(series.source)
        if low is None or high is None or (series.instrument.kind != "counter" and low != high):
            continue
        assert low <= value <= high, series.source
        compared += 1
    return compared


def test_every_number_of_a_busy_cgroup_is_the_files(cgroup: Cgroup, disk: Path) -> None:
    leaf = cgroup.child("leaf", memory_max="512M", memory_high="256M", cpu_max="50000 100000", pids_max=50)
    workload = leaf.spawn()
    workload.grow(16)
    workload.write(disk, 2)
    workload.burn(0.1)
    with Sweeps() as sweeps:
        before = raw(leaf.path)
        reading = sweeps.of(leaf)
        after = raw(leaf.path)
    assert assert_between(reading, before, after) > 60


def test_a_cgroup_at_rest_is_reported_to_the_last_digit(cgroup: Cgroup) -> None:
    leaf = cgroup.child("leaf", memory_max="64M")
    with Sweeps() as sweeps:
        before = raw(leaf.path)
        reading = sweeps.of(leaf)
        after = raw(leaf.path)
    reported = {series.source: value for series, value in reading.points}
    unchanged = {source for source in before if before[source] == after.get(source)}
    for source in unchanged & reported.keys():
        assert reported[source] == before[source], source
    assert len(unchanged & reported.keys()) > 70


@pytest.mark.parametrize(
    "file",
    [
        "cpu.stat",
        "cpu.stat.local",
        "memory.stat",
        "memory.events",
        "memory.events.local",
        "memory.swap.events",
        "pids.events",
        "cgroup.events",
        "cgroup.stat",
    ],
)
def test_no_key_is_overlooked(cgroup: Cgroup, file: str) -> None:
    if not (cgroup.path / file).exists():
        return  # which kernels have which file is test_machine's business
    leaf = cgroup.child("leaf")
    with Sweeps() as sweeps:
        reported = {series.source for series, _ in sweeps.of(leaf).points}
    overlooked = {key for key in leaf.flat(file) if f"{file}.{key}" not in reported}
    allowed = UNREPORTED.get(file, set()) | {
        k for k in overlooked if k.startswith(("nr_subsys", "nr_dying_subsys"))
    }
    assert overlooked <= allowed


def test_the_root_is_reported_with_its_files(cgroup: Cgroup) -> None:
    with Sweeps() as sweeps:
        before = raw(MOUNT)
        readings = sweeps.sweep()
        after = raw(MOUNT)
    [root] = [reading for reading in readings if reading.entity.kind == "root"]
    counters = Reading.of(
        root.entity, root.time_ns, [point for point in root.points if point[0].instrument.kind == "counter"]
    )  # the machine's amounts may move and come back meanwhile
    assert assert_between(counters, before, after) > 15
    assert root.entity.began_ns == _boot_time_ns()


def test_memory_is_told_by_node(cgroup: Cgroup) -> None:
    leaf = cgroup.child("leaf", cpuset_mems="1")
    leaf.spawn().grow(24)
    with Sweeps() as sweeps:
        reading = sweeps.of(leaf)
    on_node = [
        reading.metric("cgroup.memory.numa.usage", cgroup_memory_type="anon", cgroup_numa_node=node)
        for node in (0, 1)
    ]
    assert on_node[1] >= 24 << 20 > on_node[0]
    assert reading.metric("cgroup.cpuset.node.count") == 1


def test_io_through_the_disk_is_counted_under_its_name(cgroup: Cgroup, disk: Path) -> None:
    leaf = cgroup.child("leaf")
    workload = leaf.spawn()
    workload.write(disk, 4)
    workload.read(disk, 2)
    with Sweeps() as sweeps:
        reading = sweeps.of(leaf)
    device = disk.name
    moved = {
        direction: reading.metric("cgroup.disk.io", system_device=device, disk_io_direction=direction)
        for direction in ("read", "write")
    }
    assert moved["write"] == 4 << 20
    # who opens a disk after it was written may also pay for the kernel's look at its partition table
    assert 0 <= moved["read"] - (2 << 20) <= 64 << 10


def test_a_limit_of_io_is_told_by_device_and_direction(cgroup: Cgroup, disk: Path) -> None:
    number = os.stat(disk).st_rdev
    leaf = cgroup.child("leaf", io_max=f"{os.major(number)}:{os.minor(number)} rbps=1048576")
    with Sweeps() as sweeps:
        reading = sweeps.of(leaf)
    limits = [
        (dict(s.attributes)["disk.io.direction"], v)
        for s, v in reading.points
        if s.instrument.name == "cgroup.disk.limit.io"
    ]
    assert limits == [("read", 1048576)]


def test_pressure_of_a_cgroup_can_be_switched_off(cgroup: Cgroup) -> None:
    leaf = cgroup.child("leaf")
    with Sweeps() as sweeps:
        assert sweeps.of(leaf).value("memory.pressure.some.total") == 0
        leaf.write("cgroup.pressure", 0)
        off = sweeps.of(leaf)
        assert off.value("memory.pressure.some.total") is None
        assert off.metric("cgroup.memory.usage") is not None


def test_the_host_is_what_proc_says() -> None:
    before = _vmstat()
    readings = sweep(HostCollector(HostCollector.Config(), Roots.discover()))
    after = _vmstat()
    [kills] = [
        v for r in readings for s, v in r.points if s.instrument.name == "system.memory.linux.oom_kills"
    ]
    assert before["oom_kill"] <= kills <= after["oom_kill"]
    [total] = [v for r in readings for s, v in r.points if s.instrument.name == "system.memory.limit"]
    assert total == _meminfo()["MemTotal"] * 1024


def test_pressure_of_the_host_is_what_proc_says() -> None:
    before = _pressure("memory")
    [reading] = sweep(PressureCollector(PressureCollector.Config(), Roots.discover()))
    after = _pressure("memory")
    for kind in ("some", "full"):
        stalled = reading.metric("system.memory.linux.pressure.time", system_linux_pressure_stall_type=kind)
        assert before[kind] <= stalled * 1e6 <= after[kind]
    assert reading.metric("system.cpu.linux.pressure.time", system_linux_pressure_stall_type="full") is None


def test_without_root_every_cgroup_is_still_read(cgroup: Cgroup) -> None:
    leaf = cgroup.child("leaf", memory_max="64M")
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.setuid(65534)
        with Sweeps() as sweeps:
            limit = sweeps.of(leaf).metric("cgroup.memory.effective_limit")
        os.write(write, str(limit).encode())
        os._exit(0)
    os.close(write)
    assert os.read(read, 100) == str(64 << 20).encode()
    os.waitpid(child, 0)


def _vmstat() -> dict[str, int]:
    return {k: int(v) for k, v in map(str.split, Path("/proc/vmstat").read_text().splitlines())}


def _meminfo() -> dict[str, int]:
    return {
        line.split(":")[0]: int(line.split()[1]) for line in Path("/proc/meminfo").read_text().splitlines()
    }


def _pressure(resource: str) -> dict[str, int]:
    lines = Path(f"/proc/pressure/{resource}").read_text().splitlines()
    return {line.split()[0]: int(line.rpartition("=")[2]) for line in lines}


def _boot_time_ns() -> int:
    [btime] = [
        line.split()[1] for line in Path("/proc/stat").read_text().splitlines() if line.startswith("btime")
    ]
    return int(btime) * 10**9
