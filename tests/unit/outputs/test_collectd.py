"""Readings as collectd's values: the right type, unit and name, and nothing where there is none."""

import math
from pathlib import Path

import pytest
from tests.unit.outputs.sweeps import cgroup

from cgotel import inquiry, plugins, self_metrics
from cgotel.contract import CollectorSettings
from cgotel.kernel.roots import Roots
from cgotel.model import Entity, Instrument, Reading
from cgotel.outputs.collectd import Mapper, Value, layout
from cgotel.outputs.collectd.rows import FAMILIES, ROWS, row_of
from cgotel.outputs.collectd.types import OWN, TYPES, TYPES_DB, parse

COUNTER = Instrument("cgroup.cpu.throttled.time", "counter", "s", "", "double")
CPU_TIME = Instrument("container.cpu.time", "counter", "s", "", "double")
USED = Instrument("cgroup.memory.usage", "updowncounter", "By", "")
UTILIZATION = Instrument("cgroup.cpu.utilization", "gauge", "1", "", "double")
HEADROOM = Instrument("cgroup.memory.high_headroom", "updowncounter", "By", "")
WEB = cgroup("/system.slice/web.service")
HOST = Entity("host", "h")

_ALL = {"pressure": {"averages": True}, "cgroup": {"pressure_averages": True}}


def built_in_instruments():
    found = [*self_metrics.INSTRUMENTS, *inquiry.INSTRUMENTS.values()]
    for name, kind in plugins.load(environ={plugins.RESCUE: "none"}).collectors.items():
        settings: CollectorSettings = kind.Config(**_ALL.get(name, {}))
        found += kind(settings, Roots()).instruments
    return [i for i in found if not i.name.startswith("process.")]  # collectd's own plugin tells those


def values(*points, entity=WEB, missing=()):
    [entry] = Mapper(missing).entries([Reading.of(entity, 1, points)])
    return entry.values


@pytest.mark.parametrize("instrument", built_in_instruments(), ids=lambda i: i.name)
def test_every_built_in_metric_has_a_row_of_its_own_and_a_type_of_its_kind(instrument):
    row = row_of(instrument)
    assert row in ROWS.values()
    kinds = {source.kind for source in TYPES[row.type]}
    assert kinds == {"DERIVE" if instrument.kind == "counter" else "GAUGE"}


def test_every_row_is_of_a_metric():
    names = {i.name for i in built_in_instruments()}
    assert ROWS.keys() <= {name.removeprefix(f) for name in names for f in ("", *FAMILIES)}


def test_no_two_metrics_of_one_entity_share_a_name():
    hardware = ("hw.", "nvidia.gpu.")
    groups = {
        name: "host" if name.startswith("system.") else "hardware" if name.startswith(hardware) else "rest"
        for name in ROWS
    }
    groups["nvidia.gpu.cgroup.memory.usage"] = "rest"  # it is on the cgroup
    for group in set(groups.values()):
        rows = [row for name, row in ROWS.items() if groups[name] == group]
        names = {(row.type, row.instance, str(row.source)) for row in rows}
        assert len(names) == len(rows)


def test_own_types_are_none_of_the_package():
    assert all(name.startswith("cgotel_") for name in OWN)
    assert parse(TYPES_DB) == OWN


def test_the_file_of_types_is_fresh():
    assert Path(__file__).parents[3].joinpath("collectd/cgotel.types.db").read_text() == TYPES_DB


def test_every_own_type_is_used():
    assert OWN.keys() <= {row.type for row in ROWS.values()}


def test_microseconds_become_milliseconds_rounded_down():
    series = COUNTER.series("cpu.stat.throttled_usec", 1_000_000)
    assert values((series, 1_999_999)) == [Value("total_time_in_ms", "cpu-throttled", [1999])]


def test_a_large_counter_stays_exact():
    series = CPU_TIME.series("cpu.stat.user_usec", 1_000_000, {"cpu.mode": "user"})
    other = CPU_TIME.series("cpu.stat.system_usec", 1_000_000, {"cpu.mode": "system"})
    exact = (1 << 53) + 1
    assert values((series, exact), (other, 2)) == [Value("ps_cputime", "", [exact, 2])]


def test_a_value_that_lacks_a_data_source_is_none():
    series = CPU_TIME.series("cpu.stat.user_usec", 1_000_000, {"cpu.mode": "user"})
    assert values((series, 5)) == []


def test_what_a_type_cannot_hold_is_left_out():
    series = USED.series("memory.current")
    assert values((series, 1 << 48)) == [Value("memory", "used", [float(1 << 48)])]
    assert values((series, (1 << 48) + 1)) == []


def test_a_counter_beyond_64_bits_is_left_out():
    series = Instrument("x.y", "counter", "1", "").series("x")
    assert values((series, (1 << 63) - 1)) == [Value("derive", "x.y", [(1 << 63) - 1])]
    assert values((series, 1 << 63)) == []


def test_more_than_the_whole_and_less_than_nothing_are_told():
    above = (UTILIZATION.series("cpu.utilization"), 1.7)
    below = (HEADROOM.series("memory.high_headroom", attributes={"cgroup.limit.owner": "self"}), -4096)
    assert values(above, below) == [
        Value("cgotel_utilization", "cpu", [pytest.approx(170)]),
        Value("cgotel_headroom", "memory_high", [-4096]),
    ]


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_left_out(number):
    series = Instrument("x.z", "gauge", "1", "", "double").series("x")
    assert values((series, number)) == []
    assert values((COUNTER.series("cpu.stat.throttled_usec", 1_000_000), number)) == []


def test_missing_types_cost_their_values():
    above = (UTILIZATION.series("cpu.utilization"), 0.5)
    used = (USED.series("memory.current"), 5)
    assert values(above, used, missing=["cgotel_utilization"]) == [Value("memory", "used", [5])]


def test_a_plugins_metric_is_told_under_its_own_name_with_its_attributes():
    series = Instrument("acme.jobs", "counter", "{job}", "").series("x", attributes={"queue": "a/b", "n": 3})
    assert values((series, 4)) == [Value("derive", "acme.jobs-a~b-3", [4])]


def test_attributes_tell_devices_apart():
    io = Instrument("container.disk.io", "counter", "By", "")
    points = [
        (io.series("io.stat", attributes={"system.device": device, "disk.io.direction": way}), number)
        for device, way, number in (
            ("sda", "read", 1),
            ("sda", "write", 2),
            ("sdb", "write", 3),
            ("sdb", "read", 4),
        )
    ]
    assert values(*points) == [Value("disk_octets", "sda", [1, 2]), Value("disk_octets", "sdb", [4, 3])]


@pytest.mark.parametrize(("size", "name"), [(2 << 20, "2MB"), (1 << 30, "1GB"), (64 << 10, "64KB")])
def test_huge_pages_are_named_as_the_kernel_names_them(size, name):
    pages = Instrument("cgroup.hugetlb.usage", "updowncounter", "By", "")
    series = pages.series("hugetlb", attributes={"cgroup.hugetlb.page_size": size})
    assert values((series, 1)) == [Value("memory", f"hugetlb-{name}", [1])]


def test_the_host_has_no_instance_and_a_cgroup_its_path_as_meta():
    host, web = Mapper().entries([Reading.of(HOST, 1, []), Reading.of(WEB, 1, [])])
    assert (host.plugin_instance, host.meta) == ("", {})
    assert (web.plugin_instance, web.meta) == (
        "web.service",
        {"process.linux.cgroup": "0::/system.slice/web.service"},
    )


def test_a_layout_follows_the_series():
    mapper = Mapper()
    one, two = USED.series("memory.current"), COUNTER.series("cpu.stat.throttled_usec", 1_000_000)
    readings = [Reading(WEB, 1, (one,), [1]), Reading(WEB, 1, (one, two), [2, 3000])]
    found = [[v.numbers for v in entry.values] for entry in mapper.entries(readings)]
    assert found == [[[1]], [[2], [3]]]
    assert [slot.type for slot in layout((one, two))] == ["memory", "total_time_in_ms"]
