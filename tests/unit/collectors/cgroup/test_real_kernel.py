"""The whole collector over the real kernel: what vanishes while it is read costs itself alone."""

import os
import threading

from tests.unit.collectors.cgroup.sweeping import path_of
from tests.unit.kernel.real import open_descriptors, remove

from cgotel.collectors.cgroup import CgroupCollector, CgroupConfig
from cgotel.contract import State, Tick
from cgotel.kernel import topology
from cgotel.kernel.roots import Roots
from cgotel.testing import sweep


def test_the_real_kernels_files_are_read_as_they_stand(cgroup) -> None:
    (cgroup / "web.service").mkdir()
    readings = {path_of(r): r for r in sweep(CgroupCollector(CgroupConfig(), Roots(cgroup=str(cgroup))))}
    assert set(readings) == {"/", "/web.service"}
    web = readings["/web.service"]
    for line in (cgroup / "web.service/cpu.stat").read_text().splitlines():
        key, value = line.split()
        if key != "usage_usec":
            assert web.value(f"cpu.stat.{key}") == int(value)
    assert web.value("cgroup.events.populated") == 0
    assert web.value("cgroup.procs.count") == 0
    assert web.entity.key == f"/web.service@{os.stat(cgroup / 'web.service').st_ino}"


def test_the_machines_own_root_began_at_boot_and_has_no_cpu_full() -> None:
    roots = Roots.discover()
    root = next(iter(sweep(CgroupCollector(CgroupConfig(max_depth=0), roots))))
    assert root.value("cpu.pressure.full.total") is None
    assert root.value("cpu.pressure.some.total") is not None
    if os.stat(str(roots.cgroup)).st_ino == 1:  # and not the root of a cgroup namespace
        assert root.entity.began_ns == topology.boot_time_ns("/proc")


def test_a_cgroup_that_vanishes_in_the_middle_of_a_sweep_has_no_reading_and_takes_no_other_along(
    cgroup,
) -> None:
    for name in "abc":
        (cgroup / name).mkdir()
    collector = CgroupCollector(CgroupConfig(), Roots(cgroup=str(cgroup)))
    collector.start()
    assert len(list(collector.collect(Tick(0, 0)))) == 4
    readings = collector.collect(Tick(1, 1))
    assert path_of(next(readings)) == "/"
    (cgroup / "b").rmdir()
    assert {path_of(reading) for reading in readings} == {"/a", "/c"}
    assert {path_of(reading) for reading in collector.collect(Tick(2, 2))} == {"/", "/a", "/c"}
    collector.close()


def test_hundreds_of_real_cgroups_made_and_removed_during_sweeps_lose_no_other(cgroup) -> None:
    before = open_descriptors()
    for name in ("steady", "churning"):
        (cgroup / name).mkdir()
    collector = CgroupCollector(CgroupConfig(), Roots(cgroup=str(cgroup)))
    collector.start()
    churn = threading.Thread(target=_churn, args=(cgroup / "churning", 500))
    churn.start()
    number = 0
    while churn.is_alive() or number < 3:
        paths = [path_of(reading) for reading in collector.collect(Tick(number, number * 10**10, number))]
        assert len(paths) == len(set(paths))
        assert {"/", "/steady", "/churning"} <= set(paths)
        number += 1
    churn.join()
    assert {path_of(r) for r in collector.collect(Tick(0, 10**15))} == {"/", "/steady", "/churning"}
    assert len(collector._members) == 3
    assert not [status for status in collector.sources() if status.state is State.FAILED]
    collector.close()
    assert open_descriptors() == before


def _churn(below, count: int) -> None:
    for number in range(count):
        (below / f"pod-{number}").mkdir()
        (below / f"pod-{number}/inner").mkdir()
        remove(below / f"pod-{number}")
