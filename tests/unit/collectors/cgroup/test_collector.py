"""The whole collector over a machine of files, and over the real kernel."""

import os

import msgspec
import pytest
from tests.unit.collectors.cgroup.kernel_files import LEAF, ROOT
from tests.unit.collectors.cgroup.sweeping import path_of
from tests.unit.kernel.real import open_descriptors

from cgotel.collectors.cgroup import CgroupCollector, CgroupConfig
from cgotel.collectors.cgroup.collector import LIMIT_FILES
from cgotel.contract import State, Tick, Unavailable
from cgotel.kernel.roots import Roots
from cgotel.testing import sweep

ID = "4f2a91c0d7e3" * 5 + "abcd"
DOCKER = f"docker-{ID}.scope"
POD = "kubepods-burstable-pod0b8a1b6e_9a5c_4f3c_8f5e_6a1d2c3b4a59.slice"
STAT = {"cpu.stat": LEAF["cpu.stat"]}
CONTROLLERS = {"cpu", "memory", "io", "pids", "hugetlb", "rdma", "misc", "dmem", "cpuset"}


def test_every_instrument_is_filled_and_every_point_has_its_instrument_declared(cgroups) -> None:
    limited = {**LEAF, "deeper.service": LEAF}
    cgroups.write({DOCKER: limited, "kubepods.slice": {POD: limited}, "web.service": limited})
    cgroups.configure(pressure_averages=True)
    cgroups.sweep(0)
    filled = {series.instrument for reading in cgroups.sweep(10).values() for series in reading.series}
    assert filled == set(cgroups.collector.instruments)
    assert len(cgroups.collector.instruments) == len({i.name for i in cgroups.collector.instruments})


def test_what_a_cgroup_is_decides_what_its_metrics_are_called(cgroups) -> None:
    cgroups.write({DOCKER: LEAF, "kubepods.slice": {**LEAF, POD: LEAF}})
    readings = cgroups.sweep()
    assert readings[f"/{DOCKER}"].metric("container.cpu.time", cpu_mode="user") == 11.0
    assert readings[f"/{DOCKER}"].metric("container.disk.io", disk_io_direction="read") == 1459200
    assert readings[f"/kubepods.slice/{POD}"].metric("k8s.pod.memory.usage") == 104857600
    assert readings["/kubepods.slice"].metric("cgroup.memory.usage") == 104857600
    assert readings[f"/{DOCKER}"].entity.attributes["container.id"] == ID


def test_the_same_series_are_the_same_tuple_from_sweep_to_sweep_and_among_like_cgroups(cgroups) -> None:
    cgroups.write({"a.service": LEAF, "b.service": LEAF})
    cgroups.sweep(0)
    first = cgroups.sweep(10)
    cgroups.write(
        {"a.service": {"memory.current": "7\n", "cpu.stat": LEAF["cpu.stat"].replace("27381", "99999")}}
    )
    second = cgroups.sweep(20)
    for path in ("/", "/a.service", "/b.service"):
        assert second[path].series is first[path].series
        assert len(second[path].series) == len(second[path].values)
    assert second["/a.service"].series is second["/b.service"].series
    assert second["/a.service"].value("memory.current") == 7
    cgroups.write({"a.service": {"memory.max": "max\n"}})
    assert cgroups.sweep(30)["/a.service"].series is not second["/a.service"].series
    cgroups.write({"a.service": {"memory.max": LEAF["memory.max"]}})
    assert cgroups.sweep(40)["/a.service"].series is second["/a.service"].series


def test_no_series_stands_twice_in_a_reading(cgroups) -> None:
    cgroups.write({"a": {**LEAF, "b": {**LEAF, "c": LEAF}}})
    for reading in cgroups.sweep().values():
        points = [(series.instrument.name, series.attributes) for series in reading.series]
        assert len(points) == len(set(points))


def test_a_cgroup_made_anew_is_another_entity_with_counters_of_its_own(cgroups) -> None:
    cgroups.write({"web.service": {**LEAF, "cgroup.procs": "1\n"}})
    old = cgroups.sweep(0)["/web.service"]
    assert cgroups.sweep(10)["/web.service"].entity == old.entity
    (cgroups.mount / "web.service").rename(cgroups.directory / "old")  # its inode number stays taken
    cgroups.write({"web.service": {**LEAF, "cgroup.procs": "2\n"}})
    new = cgroups.sweep(20)["/web.service"]
    assert new.entity.key != old.entity.key
    assert new.entity.attributes == old.entity.attributes
    assert new.value("cpu.usage") is None
    assert new.value("cgroup.procs.observed_starts") == 1


def test_an_entity_began_when_its_cgroup_was_made(cgroups) -> None:
    cgroups.write({"web.service": STAT})
    made_ns = os.stat(cgroups.mount / "web.service").st_ctime_ns
    entity = cgroups.sweep()["/web.service"].entity
    assert entity.began_ns == made_ns
    cgroups.write({"web.service": {"new.scope": STAT}})  # changes the directory
    assert cgroups.sweep(10)["/web.service"].entity is entity


def test_controllers_may_all_be_absent(cgroups) -> None:
    cgroups.write({"a": {"cpu.stat": "usage_usec 3\nuser_usec 1\nsystem_usec 2\n", "cgroup.procs": ""}})
    cgroups.sweep(0)
    reading = cgroups.sweep(10)["/a"]
    assert {series.source.partition(".")[0] for series in reading.series} <= {"cpu", "cgroup", "memory"}
    for file in ("memory.current", "memory.max", "pids.current", "cpu.max.limit", "memory.working_set"):
        assert reading.value(file) is None
    assert reading.attribute("cgroup.memory.effective_limit", "cgroup.limit.owner") == "host"


def test_a_controller_that_is_enabled_later_is_found_at_the_slow_beat(cgroups) -> None:
    cgroups.write({"a": STAT})
    cgroups.sweep(0)
    cgroups.write({"a": {"memory.current": "5\n"}})
    assert cgroups.sweep(59)["/a"].value("memory.current") is None
    assert cgroups.sweep(60)["/a"].value("memory.current") == 5


def test_the_roots_memory_stat_is_read_on_the_slow_beat_and_everybody_elses_at_once(cgroups) -> None:
    def anon(second: int, amount: int) -> list:
        content = f"anon {amount}\n"
        cgroups.write({**ROOT, "memory.stat": content, "a": {**STAT, "memory.stat": content}})
        readings = cgroups.sweep(second)
        return [readings[path].value("memory.stat.anon") for path in ("/", "/a")]

    assert anon(0, 1) == [1, 1]
    assert anon(59, 2) == [1, 2]
    assert anon(60, 3) == [3, 3]
    cgroups.configure(slow_interval=5.0)
    assert anon(61, 4) == [4, 4]
    assert anon(66, 5) == [5, 5]


def test_a_choice_of_cgroups_still_knows_the_limits_above_them(cgroups) -> None:
    cgroups.write({"a": {**STAT, "memory.max": "9\n", "web.service": STAT, "db.service": STAT}, "b": STAT})
    cgroups.configure(include=("/**/*.service",), exclude=("/**/db.*",))
    readings = cgroups.sweep()
    assert set(readings) == {"/a/web.service"}
    assert readings["/a/web.service"].metric("cgroup.memory.effective_limit") == 9
    assert readings["/a/web.service"].attribute("cgroup.memory.effective_limit", "cgroup.limit.owner") == "/a"
    read = {d.path: set(member.files) for d, member in cgroups.collector._members.items()}
    assert read["/a"] == LIMIT_FILES
    assert read["/a/web.service"] > LIMIT_FILES
    cgroups.configure(max_depth=1)
    assert set(cgroups.sweep()) == {"/", "/a", "/b"}
    cgroups.configure(kinds=("service",))
    assert set(cgroups.sweep()) == {"/a/web.service", "/a/db.service"}


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"include": ["web"]}, "must begin with '/'"),
        ({"exclude": ["/["]}, "cannot be read"),
        ({"kinds": ["servce"]}, "no kind 'servce'; allowed: .*service"),
        ({"max_depth": -1}, "max_depth"),
        ({"slow_interval": 0}, "slow_interval"),
        ({"keep_open_files": -1}, "keep_open_files"),
    ],
)
def test_a_configuration_that_cannot_be_meant_is_one_clear_error(config: dict, message: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=message):
        msgspec.convert(config, CgroupConfig)


@pytest.mark.parametrize("keep_open_files", [0, 1, 7, 8192])
def test_any_budget_of_open_files_gives_the_same_readings_and_leaves_none_open(
    cgroups, keep_open_files: int
) -> None:
    cgroups.write({"a": {**LEAF, "b": LEAF}, DOCKER: LEAF})
    expected = {path: reading.values for path, reading in cgroups.sweep().items()}
    cgroups.collector.close()
    before = open_descriptors()
    cgroups.configure(keep_open_files=keep_open_files)
    assert {path: reading.values for path, reading in cgroups.sweep().items()} == expected
    kept = {entry for entry in open_descriptors() - before if not os.path.isdir(entry.partition(": ")[2])}
    assert len(kept) <= keep_open_files
    cgroups.collector.close()
    assert open_descriptors() == before


def test_a_collector_that_is_started_again_reads_everything_at_once(cgroups) -> None:
    cgroups.write({"a": LEAF})
    first = sweep(cgroups.collector, Tick(0, 0))
    assert [len(reading.values) for reading in sweep(cgroups.collector, Tick(1, 1))] == [
        len(reading.values) for reading in first
    ]


def test_without_a_hierarchy_it_is_unavailable_and_says_what_to_do() -> None:
    with pytest.raises(Unavailable) as unavailable:
        sweep(CgroupCollector(CgroupConfig(), Roots(cgroup=None)))
    status = unavailable.value.status
    assert (status.name, status.state) == ("cgroup", State.ABSENT)
    assert "HOST_CGROUP" in status.remedy


def test_a_mount_that_does_not_exist_is_unavailable_and_named(tmp_path) -> None:
    with pytest.raises(Unavailable, match="nowhere: No such file or directory"):
        sweep(CgroupCollector(CgroupConfig(), Roots(cgroup=str(tmp_path / "nowhere"))))


def test_a_name_that_is_no_text_is_shown_and_kept_apart_from_its_like(cgroups) -> None:
    mount = os.fsencode(cgroups.mount)
    for name in (b"\xff", b"\\xff", b"-rf\n"):
        os.mkdir(mount + b"/" + name)
        with open(mount + b"/" + name + b"/cpu.stat", "w") as stat:
            stat.write(LEAF["cpu.stat"])
    entities = [r.entity for r in cgroups.collector.collect(Tick(0, 0)) if len(path_of(r)) > 1]
    assert sorted(str(e.attributes["process.linux.cgroup"]) for e in entities) == [
        "0::/-rf\n",
        "0::/\\xff",
        "0::/\\xff",
    ]
    assert len({entity.key for entity in entities}) == 3
    assert all(str(value).encode() for entity in entities for value in entity.attributes.values())


def test_what_is_kept_of_cgroups_that_ended_is_nothing(cgroups) -> None:
    limited = {**STAT, "memory.max": "9\n", "memory.current": "3\n", "cpu.max": "1000 1000\n", "inner": STAT}
    cgroups.sweep(0)
    for number in range(300):
        cgroups.write({f"pod-{number}": limited})
        assert f"/pod-{number}/inner" in cgroups.sweep(number)
        cgroups.remove(f"pod-{number}")
    cgroups.sweep(400)
    assert set(cgroups.collector._members) == {cgroups.collector._tree.root}
    assert len(cgroups.collector._interned) < 100
    for plan in cgroups.collector._plans.values():
        for owned in (*plan.derived._bounds, plan.derived._throttled):
            assert set(owned) <= {"self", "host"}


def test_a_cgroup_that_cannot_be_admitted_does_not_break_the_sweeps_after(cgroups, monkeypatch) -> None:
    cgroups.write({"a": STAT, "b": STAT})
    monkeypatch.setattr("cgotel.collectors.cgroup.collector.identify", _fail)
    with pytest.raises(ZeroDivisionError):
        cgroups.sweep(0)
    monkeypatch.undo()
    assert set(cgroups.sweep(10)) == {"/", "/a", "/b"}


def _fail(path: str) -> None:
    raise ZeroDivisionError(path)
