"""Whose limit is in force, on a real tree: narrow ones, tight ones, changed ones."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.lab.guest.cgroups import Cgroup
from tests.lab.guest.sweeps import Sweeps
from tests.lab.guest.workloads import MIB, Ended

LIMIT = "cgroup.memory.effective_limit"


def in_force(reading, name=LIMIT):
    return reading.metric(name), reading.attribute(name, "cgroup.limit.owner")


def test_the_narrowest_of_three_nested_limits_is_in_force(cgroup: Cgroup) -> None:
    outer = cgroup.child("outer", memory_max="256M")
    middle = outer.child("middle", memory_max="128M")
    leaf = middle.child("leaf", memory_max="192M")
    with Sweeps() as sweeps:
        assert in_force(sweeps.of(leaf)) == (128 * MIB, middle.name)
        leaf.write("memory.max", "96M")
        assert in_force(sweeps.of(leaf)) == (96 * MIB, "self")
        leaf.write("memory.max", "max")
        middle.write("memory.max", "max")
        assert in_force(sweeps.of(leaf)) == (256 * MIB, outer.name)
        outer.write("memory.max", "max")
        total, owner = in_force(sweeps.of(leaf))
        assert owner == "host"
        assert total == _mem_total()


def test_a_sibling_can_leave_less_than_the_own_limit(cgroup: Cgroup) -> None:
    outer = cgroup.child("outer", memory_max="128M", memory_swap_max=0)
    leaf = outer.child("leaf", memory_max="100M")
    sibling = outer.child("sibling")
    sibling.spawn().grow(80)
    with Sweeps() as sweeps:
        reading = sweeps.of(leaf)
    assert in_force(reading) == (100 * MIB, "self")
    left, owner = in_force(reading, "cgroup.memory.headroom")
    assert owner == outer.name
    assert 0 < left <= 48 * MIB


def test_memory_high_is_in_force_and_its_crossing_is_counted(cgroup: Cgroup) -> None:
    outer = cgroup.child("outer", memory_high="32M", memory_swap_max=0)
    leaf = outer.child("leaf")
    with Sweeps() as sweeps:
        sweeps.sweep()
        leaf.spawn().tell("grow", 40)
        outer.await_events("memory.events", lambda events: events["high"] > 0)
        reading = sweeps.of(leaf)
        above = sweeps.of(outer)
    assert in_force(reading, "cgroup.memory.effective_high") == (32 * MIB, outer.name)
    assert above.metric("cgroup.memory.events", cgroup_memory_event="high") > 0
    assert above.metric("cgroup.memory.peak") > 32 * MIB


def test_the_pids_limit_of_an_ancestor_and_its_hits(cgroup: Cgroup) -> None:
    outer = cgroup.child("outer", pids_max=8)
    leaf = outer.child("leaf")
    assert leaf.spawn().fork(20) == 7
    with Sweeps() as sweeps:
        reading = sweeps.of(leaf)
        above = sweeps.of(outer)
    assert in_force(reading, "cgroup.pid.effective_limit") == (8, outer.name)
    assert in_force(reading, "cgroup.pid.headroom") == (0, outer.name)
    hits = [r.metric("cgroup.pid.limit_hits") for r in (above, reading)]
    assert max(hits) >= 1  # before 6.11 counted where the fork failed, since then where the limit is


def test_cpus_are_limited_by_quota_or_by_cpuset(cgroup: Cgroup) -> None:
    outer = cgroup.child("outer", cpu_max="150000 100000")
    leaf = outer.child("leaf", cpuset_cpus="0")
    with Sweeps() as sweeps:
        assert in_force(sweeps.of(leaf), "cgroup.cpu.effective_limit") == (1, "self")
        outer.write("cpu.max", "25000 100000")
        assert in_force(sweeps.of(leaf), "cgroup.cpu.effective_limit") == (0.25, outer.name)


def test_a_quota_throttles_and_the_ancestors_is_joined_to_the_leaf(cgroup: Cgroup) -> None:
    outer = cgroup.child("outer", cpu_max="20000 100000")
    leaf = outer.child("leaf")
    workload = leaf.spawn()
    with Sweeps() as sweeps:
        sweeps.sweep()
        workload.burn(0.2)
        before = outer.flat("cpu.stat")["throttled_usec"]
        reading = sweeps.of(leaf)
        after = outer.flat("cpu.stat")["throttled_usec"]
    name = "cgroup.cpu.ancestor.throttled.time"
    assert reading.attribute(name, "cgroup.limit.owner") == outer.name
    assert 0 < before <= reading.metric(name) * 1e6 <= after
    assert not reading.metric("cgroup.cpu.throttled.time")  # its own quota did nothing: it has none
    assert 0 < reading.metric("cgroup.cpu.usage") < 0.5


@pytest.mark.kernel_file("cpu.stat.local", since="6.6")
def test_local_throttling_includes_the_ancestors(cgroup: Cgroup) -> None:
    outer = cgroup.child("outer", cpu_max="20000 100000")
    leaf = outer.child("leaf")
    leaf.spawn().burn(0.2)
    with Sweeps() as sweeps:
        assert sweeps.of(leaf).metric("cgroup.cpu.throttled.local_time") > 0


def test_an_oom_kill_is_an_event_of_the_cgroup_where_the_victim_lived(cgroup: Cgroup) -> None:
    outer = cgroup.child("outer", memory_max="32M", memory_swap_max=0)
    leaf = outer.child("leaf")
    workload = leaf.spawn()
    with Sweeps() as sweeps:
        sweeps.sweep()
        assert sweeps.events() == []
        with pytest.raises(Ended):
            workload.grow(64)
        sweeps.sweep()
        [event] = sweeps.events()
        sweeps.sweep()
        assert sweeps.events() == []
    assert event.name == "cgotel.oom.kill"
    assert event.attributes["cgotel.oom.kills"] == 1
    assert event.body.endswith(leaf.name)


def test_systemd_agrees_on_the_memory_limit_in_force(tmp_path: Path) -> None:
    """EffectiveMemoryMax came with systemd 255: older ones cannot be asked."""
    unit = "cgotel-lab-effective.service"
    slice_ = "cgotellab.slice"
    _run("systemctl", "set-property", "--runtime", slice_, "MemoryMax=96M")
    _run("systemd-run", "--unit", unit, "--slice", slice_, "-p", "MemoryMax=160M", "sleep", "600")
    try:
        told = _run("systemctl", "show", "--value", "-p", "EffectiveMemoryMax", unit).strip()
        with Sweeps() as sweeps:
            [reading] = [r for r in sweeps.sweep() if r.entity.attributes.get("systemd.unit.name") == unit]
        assert in_force(reading) == (96 * MIB, f"/{slice_}")
        if told:
            assert int(told) == reading.metric(LIMIT)
        else:
            assert _systemd_version() < 255
    finally:
        _run("systemctl", "stop", unit, slice_)


def _run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _systemd_version() -> int:
    return int(_run("systemctl", "--version").split()[1])


def _mem_total() -> int:
    [line] = [line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemTotal")]
    return int(line.split()[1]) * 1024
