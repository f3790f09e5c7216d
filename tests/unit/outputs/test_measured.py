"""What was measured, and how it changed: a counter that fell, or is new, has no change."""

import pytest
from tests.unit.outputs.sweeps import cgroup, reading

from cgotel.outputs.measured import Measured, by_entity

WEB = cgroup("/web")


def measured(now, before=None, interval_s=2.0, owned=None):
    return Measured(
        [reading(WEB, now, owned)], [reading(WEB, before)] if before is not None else [], interval_s
    )


def test_a_number_that_was_not_measured_is_none():
    assert measured({"a": 0}).number("a") == 0
    assert measured({"a": 0}).number("b") is None


@pytest.mark.parametrize(
    ("now", "before", "change"),
    [({"a": 5}, {"a": 3}, 2), ({"a": 3}, {"a": 3}, 0), ({"a": 3}, {"a": 5}, None), ({"a": 3}, {}, None)],
)
def test_change(now, before, change):
    assert measured(now, before).change("a") == change


def test_time_is_a_share_of_the_interval():
    assert measured({"t": 1_500_000}, {"t": 500_000}).time("t") == 0.5


def test_time_is_never_more_than_all_of_it():
    assert measured({"t": 9_000_000}, {"t": 0}).time("t") == 1.0


def test_without_an_interval_time_is_seconds():
    assert measured({"t": 1_500_000}, interval_s=None).time("t") == 1.5


def test_amounts_are_told_apart_by_owner():
    found = measured({}, owned={"limit": (7, "/a")})
    assert found.owned("limit") == {"/a": 7}
    assert found.number("limit", "/a") == 7
    assert found.number("limit") is None


def test_several_readings_of_an_entity_are_one():
    readings = by_entity([reading(WEB, {"a": 1}), reading(cgroup("/db"), {"a": 3}), reading(WEB, {"b": 2})])
    web = Measured(readings[WEB.kind, WEB.key])
    assert (web.number("a"), web.number("b")) == (1, 2)
    assert len(readings) == 2
