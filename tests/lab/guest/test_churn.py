"""Cgroups that come and go while the collector looks: nothing fails, nothing lingers, nothing grows."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.lab.guest.cgroups import Cgroup
from tests.lab.guest.sweeps import Sweeps, key_of, path_of

from cgotel.clock import now
from cgotel.model import Reading
from cgotel.sweeper import Sweeper

MIB = 1 << 20


def below(cgroup: Cgroup, readings: list[Reading]) -> set[str]:
    return {path_of(r.entity) for r in readings if path_of(r.entity).startswith(f"{cgroup.name}/")}


def test_one_that_vanishes_in_mid_sweep_costs_no_other(cgroup: Cgroup) -> None:
    names = [f"c{n}" for n in range(12)]
    children = {f"{cgroup.name}/{name}": cgroup.child(name) for name in names}
    with Sweeps() as sweeps:
        seen: list[Reading] = []
        removed: set[str] = set()
        for reading in sweeps.collector.collect(sweeps.tick()):
            seen.append(reading)
            path = path_of(reading.entity)
            waiting = children.keys() - below(cgroup, seen) - removed
            if path in children and len(removed) < 4 and waiting:
                victim = min(waiting)
                children[victim].path.rmdir()
                removed.add(victim)
        assert len(removed) == 4
        assert below(cgroup, seen) == children.keys() - removed
        assert below(cgroup, sweeps.sweep()) == children.keys() - removed


def test_the_same_name_made_again_is_another_entity(cgroup: Cgroup) -> None:
    leaf = cgroup.child("leaf")
    leaf.spawn().burn(0.05)
    with Sweeps() as sweeps:
        first = sweeps.of(leaf)
        leaf.kill()
        leaf.path.rmdir()
        leaf.path.mkdir()
        again = sweeps.of(leaf)
    assert again.entity.key != first.entity.key
    assert again.entity.began_ns >= first.entity.began_ns
    assert again.metric("cgroup.cpu.time", cpu_mode="user") < first.metric("cgroup.cpu.time", cpu_mode="user")


class Swept:
    """Counts whole sweeps, and lets another thread wait for one that began after it asked."""

    def __init__(self) -> None:
        self._count = 0
        self._changed = threading.Condition()

    def add(self) -> None:
        with self._changed:
            self._count += 1
            self._changed.notify_all()

    def wait_for_a_whole_one(self) -> None:
        with self._changed:
            whole = self._count + 2  # the next to end may have begun before
            assert self._changed.wait_for(lambda: self._count >= whole, 60)


@contextmanager
def churning(parent: Path, count: int, swept: Swept) -> Iterator[threading.Thread]:
    """Make and remove so many cgroups, 20 at a time; every 25 the 20 that are there stay for a sweep."""

    def churn() -> None:
        for number in range(count):
            if number % 25 == 24:
                swept.wait_for_a_whole_one()
            (parent / f"n{number}").mkdir()
            if number >= 20:
                (parent / f"n{number - 20}").rmdir()
        for number in range(max(0, count - 20), count):
            (parent / f"n{number}").rmdir()

    thread = threading.Thread(target=churn)
    thread.start()
    try:
        yield thread
    finally:
        thread.join()


@pytest.mark.timeout(300)
def test_sweeps_go_on_while_500_come_and_go(cgroup: Cgroup) -> None:
    with Sweeps() as sweeps:
        sweeper = Sweeper([sweeps.collector], 10**6)
        sweeper.sweep(now())
        ended = 0
        swept = Swept()
        with churning(cgroup.path, 500, swept) as thread:
            while thread.is_alive():
                ended += len(sweeper.sweep(now()).ended)
                swept.add()
        last = sweeper.sweep(now())
        assert [running.faults.count for running in sweeper.running] == [0]
        assert below(cgroup, last.readings) == set()
        assert sweeper.sweep(now()).ended == ()
        assert ended >= 19 * 20


@pytest.mark.timeout(600)
def test_memory_stays_flat_over_10000(cgroup: Cgroup) -> None:
    with Sweeps() as sweeps:
        resident = []
        for _ in range(100):
            for number in range(100):
                (cgroup.path / f"n{number}").mkdir()
            sweeps.sweep()
            for number in range(100):
                (cgroup.path / f"n{number}").rmdir()
            sweeps.sweep()
            gc.collect()
            resident.append(_resident())
        assert max(resident[20:]) - max(resident[:20]) < 5 * MIB
        assert len(os.listdir("/proc/self/fd")) < 2000


def test_no_counter_ever_falls(cgroup: Cgroup) -> None:
    busy = cgroup.child("busy", cpu_max="50000 100000", memory_max="128M")
    workload = busy.spawn()
    highest: dict[tuple[str, str, str], float] = {}
    with Sweeps() as sweeps:
        for round_ in range(20):
            workload.burn(0.02)
            if round_ % 5 == 0:
                workload.grow(4)
            for reading in sweeps.sweep():
                for series, value in reading.points:
                    if series.instrument.kind == "counter":
                        key = key_of(reading, series)
                        assert value >= highest.get(key, 0), key
                        highest[key] = value
    assert len(highest) > 100


def test_processes_that_came_and_went_are_counted_as_a_lower_bound(cgroup: Cgroup) -> None:
    leaf = cgroup.child("leaf")
    with Sweeps() as sweeps:
        sweeps.sweep()
        workload = leaf.spawn()
        workload.fork(3)
        reading = sweeps.of(leaf)
        assert reading.metric("cgroup.process.count") == 4
        assert reading.metric("cgroup.process.observed_starts") == 4
        leaf.kill()
        reading = sweeps.of(leaf)
        assert reading.metric("cgroup.process.count") == 0
        assert reading.metric("cgroup.process.observed_exits") == 4


def test_a_controller_that_is_taken_away_ends_its_points_only(cgroup: Cgroup) -> None:
    middle = cgroup.child("middle")
    leaf = middle.child("leaf")
    with Sweeps() as sweeps:
        assert sweeps.of(leaf).metric("cgroup.pid.count") == 0
        middle.write("cgroup.subtree_control", "-pids")
        reading = sweeps.of(leaf)
        assert reading.metric("cgroup.pid.count") is None
        assert reading.metric("cgroup.memory.usage") is not None


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
