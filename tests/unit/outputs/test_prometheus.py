"""Prometheus text that its own parsers take, with every point in it under a name of its own."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families
from tests.unit.outputs.sweeps import NOON_NS, UNWRITABLE_ATTRIBUTES, UNWRITABLE_NUMBERS, cgroup

from cgotel.model import Entity, Instrument, Reading, Sweep
from cgotel.outputs.prometheus import metric_name, render

ID = "3f" * 32
TIME = Instrument("cgroup.cpu.time", "counter", "s", "CPU time", "double")
USAGE = Instrument("cgroup.memory.usage", "updowncounter", "By", 'Uses \\ and "quotes"\nand lines')
USER = TIME.series("cpu.stat.user_usec", 1_000_000, {"cpu.mode": "user"})
SYSTEM = TIME.series("cpu.stat.system_usec", 1_000_000, {"cpu.mode": "system"})
CURRENT = USAGE.series("memory.current")

WEB = cgroup("/system.slice/web.service")
DB = cgroup(f"/system.slice/docker-{ID}.scope")


def swept(*readings):
    return Sweep(NOON_NS, [Reading.of(entity, NOON_NS, points) for entity, points in readings])


def parsed(text):
    return {family.name: family for family in text_string_to_metric_families(text)}


@pytest.mark.parametrize(
    ("name", "kind", "unit", "expected"),
    [
        ("cgroup.memory.usage", "updowncounter", "By", "cgroup_memory_usage_bytes"),
        ("cgroup.cpu.throttled.time", "counter", "s", "cgroup_cpu_throttled_time_seconds_total"),
        ("cgroup.cpu.periods", "counter", "{period}", "cgroup_cpu_periods_total"),
        ("cgroup.memory.utilization", "gauge", "1", "cgroup_memory_utilization_ratio"),
        ("cgroup.status", "updowncounter", "1", "cgroup_status"),
        ("cgroup.cpu.limit", "updowncounter", "{cpu}", "cgroup_cpu_limit"),
        ("cgroup.disk.limit.io", "gauge", "By/s", "cgroup_disk_limit_io_bytes_per_second"),
        ("cgroup.disk.limit.operations", "gauge", "{operation}/s", "cgroup_disk_limit_operations_per_second"),
        ("hw.temperature", "gauge", "Cel", "hw_temperature_celsius"),
        ("hw.energy", "counter", "J", "hw_energy_joules_total"),
        ("io.bytes.read", "counter", "By", "io_bytes_read_total"),  # the unit is there already
        ("requests.total", "counter", "{request}", "requests_total"),
        ("a..b--c", "gauge", "{x}", "a_b_c"),
        ("3com.errors", "counter", "{error}", "_3com_errors_total"),
        ("signal.strength", "gauge", "dBm", "signal_strength_dBm"),
    ],
)
def test_names_follow_the_specification(name, kind, unit, expected):
    assert metric_name(Instrument(name, kind, unit, "")) == expected


def test_values_are_in_the_metrics_unit_with_the_labels_of_entity_and_series():
    text = render(swept((WEB, [(USER, 1_500_000), (SYSTEM, 250_000), (CURRENT, 4096)])))
    families = parsed(text)
    web = {
        "process_linux_cgroup": "0::/system.slice/web.service",
        "systemd_unit_name": "web.service",
        "systemd_slice_name": "system.slice",
    }
    time = families["cgroup_cpu_time_seconds"]
    assert time.type == "counter"
    assert [(s.labels, s.value) for s in time.samples] == [
        ({**web, "cpu_mode": "user"}, 1.5),
        ({**web, "cpu_mode": "system"}, 0.25),
    ]
    usage = families["cgroup_memory_usage_bytes"]
    assert (usage.type, usage.documentation) == ("gauge", USAGE.description)
    assert [(s.labels, s.value) for s in usage.samples] == [(web, 4096)]


def test_there_are_no_timestamps():
    assert all(
        s.timestamp is None for f in parsed(render(swept((WEB, [(USER, 1)])))).values() for s in f.samples
    )


def test_a_family_stands_once_and_together():
    text = render(
        swept((WEB, [(USER, 1), (CURRENT, 2), (SYSTEM, 3)]), (DB, [(CURRENT, 4), (USER, 5), (SYSTEM, 6)]))
    )
    names = [line.split("{")[0] for line in text.splitlines() if not line.startswith("#")]
    assert names == ["cgroup_cpu_time_seconds_total"] * 4 + ["cgroup_memory_usage_bytes"] * 2
    comments = [line.split()[1:3] for line in text.splitlines() if line.startswith("#")]
    assert comments == [
        ["HELP", "cgroup_cpu_time_seconds_total"],
        ["TYPE", "cgroup_cpu_time_seconds_total"],
        ["HELP", "cgroup_memory_usage_bytes"],
        ["TYPE", "cgroup_memory_usage_bytes"],
    ]


def test_openmetrics_finds_nothing_wrong_in_the_samples():
    """Its parser is strict about order, duplicates and escapes; only the counters' headers differ."""
    text = render(swept((WEB, [(USER, 1_500_000), (CURRENT, 2)]), (DB, [(USER, 5), (CURRENT, 4)])))
    headed = text.replace("# HELP cgroup_cpu_time_seconds_total", "# HELP cgroup_cpu_time_seconds")
    headed = headed.replace("# TYPE cgroup_cpu_time_seconds_total", "# TYPE cgroup_cpu_time_seconds")
    families = list(openmetrics.text_string_to_metric_families(headed + "# EOF\n"))
    assert [len(family.samples) for family in families] == [2, 2]


@given(st.text(st.characters(exclude_categories=["Cs"])), st.text(st.characters(exclude_categories=["Cs"])))
def test_whatever_an_attribute_holds_comes_back(value, other):
    entity = Entity("cgroup", "x", {"name": value or "-", "process.linux.cgroup": f"0::/{other}"})
    [family] = parsed(render(swept((entity, [(CURRENT, 1)])))).values()
    labels = family.samples[0].labels
    assert labels == {"name": value or "-", "process_linux_cgroup": f"0::/{other}"}


def test_attributes_that_are_no_strings():
    entity = Entity("x", "x", {"flag": True, "count": 3, "tags": ("a", 'b"')})
    [family] = parsed(render(swept((entity, [(CURRENT, 1)])))).values()
    assert family.samples[0].labels == {"flag": "true", "count": "3", "tags": '["a","b\\""]'}


def test_attributes_that_come_to_the_same_label_are_joined():
    entity = Entity("x", "x", {"a.b": "2", "a-b": "1", "1st": "c"})
    [family] = parsed(render(swept((entity, [(CURRENT, 1)])))).values()
    assert family.samples[0].labels == {"a_b": "1;2", "key_1st": "c"}


def test_entities_with_the_same_attributes_are_told_apart_by_key():
    text = render(swept((Entity("gpu", "GPU-1"), [(CURRENT, 1)]), (Entity("gpu", "GPU-2"), [(CURRENT, 2)])))
    [family] = parsed(text).values()
    assert {s.labels["cgotel_entity_key"]: s.value for s in family.samples} == {"GPU-1": 1, "GPU-2": 2}


def test_several_readings_of_one_entity_are_no_reason_for_a_key():
    host = Entity("host", "vm")
    text = render(swept((host, [(CURRENT, 1)]), (host, [(USER, 1)])))
    assert "cgotel_entity_key" not in text


def test_a_point_whose_place_is_taken_is_left_out_and_counted():
    twin = Instrument("cgroup.memory_usage", "updowncounter", "By", "the same name to Prometheus")
    counter = Instrument("cgroup.memory.usage.bytes", "gauge", "{x}", "a gauge as well")
    of_another_type = Instrument("cgroup.cpu.time.seconds.total", "gauge", "{x}", "no counter")
    points = [(CURRENT, 1), (USER, 7), (twin.series("a"), 2), (counter.series("b"), 3)]
    text = render(swept((WEB, [*points, (of_another_type.series("c"), 4)])))
    samples = {name: [s.value for s in family.samples] for name, family in parsed(text).items()}
    assert samples == {"cgroup_memory_usage_bytes": [1], "cgroup_cpu_time_seconds": [7e-06]}
    assert text.endswith("# 3 points are left out: their name and labels were taken\n")


def test_large_numbers_keep_every_digit():
    text = render(swept((WEB, [(CURRENT, 2**63 - 1)])))
    assert text.rstrip().endswith(f" {2**63 - 1}")


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_doubles_come_back_exactly(number):
    gauge = Instrument("x", "gauge", "{x}", "", "double")
    [family] = parsed(render(swept((WEB, [(gauge.series("x"), number)])))).values()
    assert math.copysign(1, family.samples[0].value) == math.copysign(1, number)
    assert family.samples[0].value == number


def test_an_empty_sweep_is_an_empty_text():
    assert render(swept()) == ""


def test_of_a_host_only_name_and_id_are_labels():
    told = {"host.name": "vm", "host.id": "1a2b", "host.arch": "amd64", "os.type": "linux"}
    [family] = parsed(render(swept((Entity("host", "1a2b", told), [(CURRENT, 1)])))).values()
    assert family.samples[0].labels == {"host_name": "vm", "host_id": "1a2b"}


@pytest.mark.parametrize("number", UNWRITABLE_NUMBERS)
def test_a_number_that_is_none_is_left_out_alone(number):
    text = render(swept((WEB, [(USER, number), (SYSTEM, 250_000)])))
    assert [s.value for s in parsed(text)["cgroup_cpu_time_seconds"].samples] == [0.25]
    assert text.endswith("# 1 points are left out: no finite number, or attributes of no plain value\n")


@pytest.mark.parametrize("value", UNWRITABLE_ATTRIBUTES)
def test_an_attribute_of_no_plain_value_costs_its_points_alone(value):
    odd = TIME.series("odd", attributes={"a": value})
    of_odd = Entity("x", "x", {"a": value})
    text = render(swept((WEB, [(odd, 1), (CURRENT, 4096)]), (of_odd, [(CURRENT, 1), (USER, 2)])))
    assert [s.value for f in parsed(text).values() for s in f.samples] == [4096]
    assert text.endswith("# 3 points are left out: no finite number, or attributes of no plain value\n")
