"""The JSON document: every number twice, as the kernel printed it and in the metric's unit."""

import json

import pytest
from tests.unit.outputs.sweeps import NOON_NS, UNWRITABLE_ATTRIBUTES, UNWRITABLE_NUMBERS, cgroup

from cgotel.contract import SourceStatus, State
from cgotel.model import Entity, Instrument, Reading, Sweep
from cgotel.outputs.json_document import document, encoded, timestamp

TIME = Instrument("cgroup.cpu.time", "counter", "s", "CPU time", "double")
USER = TIME.series("cpu.stat.user_usec", 1_000_000, {"cpu.mode": "user"})
HOST = {"name": "vm", "kernel": "6.12"}


def read(sweep, *statuses):
    return json.loads(document(sweep, statuses, HOST))


def test_a_document():
    web = Entity("service", "/web@7", {"systemd.unit.name": "web.service"}, NOON_NS - 1)
    found = read(
        Sweep(NOON_NS, [Reading.of(web, NOON_NS, [(USER, 1_500_000)])]),
        SourceStatus("cpu.stat", State.OK),
        SourceStatus("io.stat", State.DENIED, "in 1 of 2 cgroups", "run as root"),
    )
    assert found == {
        "version": 1,
        "time": "2023-11-15T12:00:00.000000000Z",
        "host": HOST,
        "entities": [
            {
                "kind": "service",
                "key": "/web@7",
                "attributes": {"systemd.unit.name": "web.service"},
                "began": "2023-11-15T11:59:59.999999999Z",
                "metrics": [
                    {
                        "name": "cgroup.cpu.time",
                        "unit": "s",
                        "kind": "counter",
                        "attributes": {"cpu.mode": "user"},
                        "value": 1.5,
                        "source": "cpu.stat.user_usec",
                        "raw": 1_500_000,
                    }
                ],
            }
        ],
        "sources": [
            {"name": "cpu.stat", "state": "ok", "reason": "", "remedy": ""},
            {"name": "io.stat", "state": "denied", "reason": "in 1 of 2 cgroups", "remedy": "run as root"},
        ],
    }


def test_several_readings_of_an_entity_are_one_entity():
    web = cgroup("/web")
    readings = [Reading.of(web, NOON_NS, [(USER, number)]) for number in (1, 2)]
    [entity] = read(Sweep(NOON_NS, readings))["entities"]
    assert [metric["raw"] for metric in entity["metrics"]] == [1, 2]


def test_an_unknown_beginning_is_null():
    [entity] = read(Sweep(NOON_NS, [Reading(cgroup("/web"), NOON_NS, (), [])]))["entities"]
    assert entity["began"] is None
    assert entity["metrics"] == []


def test_numbers_keep_every_digit():
    size = Instrument("x", "gauge", "By", "").series("x")
    [entity] = read(Sweep(NOON_NS, [Reading.of(cgroup("/a"), NOON_NS, [(size, 2**63 - 1)])]))["entities"]
    assert entity["metrics"][0]["value"] == 2**63 - 1


def test_text_that_is_no_unicode_keeps_its_bytes():
    content = {"a\udcff": ["b\udc80", 1, None]}
    assert json.loads(encoded(content)) == {"a\\udcff": ["b\\udc80", 1, None]}


@pytest.mark.parametrize(
    ("time_ns", "text"),
    [(0, "1970-01-01T00:00:00.000000000Z"), (1_700_049_600_000_000_001, "2023-11-15T12:00:00.000000001Z")],
)
def test_timestamps_are_rfc_3339_to_the_nanosecond(time_ns, text):
    assert timestamp(time_ns) == text


@pytest.mark.parametrize("number", UNWRITABLE_NUMBERS)
def test_a_number_that_is_none_is_left_out_alone(number, caplog):
    [entity] = read(Sweep(NOON_NS, [Reading.of(cgroup("/web"), NOON_NS, [(USER, number), (USER, 5)])]))[
        "entities"
    ]
    assert [metric["raw"] for metric in entity["metrics"]] == [5]
    assert caplog.messages == ["1 points are left out: no finite number, or attributes of no plain value"]


@pytest.mark.parametrize("value", UNWRITABLE_ATTRIBUTES)
def test_an_attribute_of_no_plain_value_costs_its_points_alone(value, caplog):
    odd = TIME.series("odd", attributes={"a": value})
    readings = [
        Reading.of(cgroup("/web"), NOON_NS, [(odd, 1), (USER, 5)]),
        Reading.of(Entity("x", "x", {"a": value}), NOON_NS, [(USER, 6)]),
    ]
    [entity] = read(Sweep(NOON_NS, readings))["entities"]
    assert [metric["raw"] for metric in entity["metrics"]] == [5]
    assert caplog.messages == ["2 points are left out: no finite number, or attributes of no plain value"]
