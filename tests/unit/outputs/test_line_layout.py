"""Where each number of a reading goes, and that it keeps its type whatever its value is."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.outputs.parsed_lines import parsed

from cgotel.model import Instrument
from cgotel.outputs import line_protocol as influx
from cgotel.outputs.line_layout import Layout

USAGE = Instrument("cgroup.memory.usage", "updowncounter", "By", "")
TIME = Instrument("cgroup.cpu.time", "counter", "s", "", "double")
SHARE = Instrument("cgroup.cpu.pressure.10s", "gauge", "1", "", "double")
LIMIT = Instrument("cgroup.cpu.effective_limit", "updowncounter", "{cpu}", "", "double")
THROTTLED = Instrument("cgroup.cpu.ancestor.throttled.time", "counter", "s", "", "double")
SWEEP = Instrument("cgotel.sweep.duration", "gauge", "s", "", "double")
STATUS = Instrument("cgotel.source.status", "updowncounter", "1", "")

CURRENT = USAGE.series("memory.current")


def lines_of(points, head="m"):
    layout = Layout(tuple(series for series, _ in points))
    written = list(layout.lines(head, [value for _, value in points], 7))
    return parsed("".join(line for line, _ in written)), sum(invalid for _, invalid in written)


def fields_of(*points):
    lines, invalid = lines_of(points)
    assert invalid == 0
    [line] = lines
    return line.fields


def test_a_field_is_the_kernels_name_and_number():
    user = TIME.series("cpu.stat.user_usec", 1_000_000, {"cpu.mode": "user"})
    assert fields_of((CURRENT, 4096), (user, 1_500_000)) == {
        "memory.current": 4096,
        "cpu.stat.user_usec": 1_500_000,
    }


@pytest.mark.parametrize(
    ("series", "values", "kind"),
    [
        (CURRENT, (1, 2.0, 0), int),
        (TIME.series("cpu.stat.user_usec", 1_000_000), (1, 2.0), int),
        (SHARE.series("cpu.pressure.some.avg10", 100), (1, 0.5, 0), float),
        (LIMIT.series("cpu.effective_limit"), (2, 0.6), float),
    ],
)
def test_a_field_never_changes_its_type(series, values, kind):
    for value in values:
        [found] = fields_of((series, value)).values()
        assert (found, type(found)) == (value, kind)


def test_an_amount_has_its_owner_beside_it():
    series = LIMIT.series("cpu.effective_limit", attributes={"cgroup.limit.owner": '/a "b" %s,'})
    assert fields_of((series, 0.5)) == {
        "cpu.effective_limit": 0.5,
        "cpu.effective_limit.owner": '/a "b" %s,',
    }


def test_a_counter_that_several_owners_have_is_a_line_for_each():
    source = "cpu.stat.ancestor.throttled_usec"
    owned = [THROTTLED.series(source, 1_000_000, {"cgroup.limit.owner": owner}) for owner in ("/a", "/b")]
    lines, _ = lines_of([(CURRENT, 1), (owned[0], 5), (owned[1], 6)])
    assert [(line.tags, line.fields) for line in lines] == [
        ({}, {"memory.current": 1}),
        ({"cgroup_limit_owner": "/a"}, {source: 5}),
        ({"cgroup_limit_owner": "/b"}, {source: 6}),
    ]


def test_what_the_kernel_did_not_name_is_in_its_own_unit_with_its_attributes_as_tags():
    errors = Instrument("cgotel.collector.errors", "counter", "{error}", "")
    attributes = {"cgotel.collector.name": "host"}
    lines, _ = lines_of(
        [
            (SWEEP.series(SWEEP.name, 10**9), 250_000_000),
            (SWEEP.series(SWEEP.name, 10**9, attributes), 1_000_000_000),
            (errors.series(errors.name, attributes=attributes), 3),
        ]
    )
    assert [(line.tags, line.fields) for line in lines] == [
        ({}, {"cgotel.sweep.duration": 0.25}),
        ({"cgotel_collector_name": "host"}, {"cgotel.sweep.duration": 1.0, "cgotel.collector.errors": 3}),
    ]


def test_of_two_series_with_one_source_the_second_shows_its_attributes():
    twice = [USAGE.series("x", attributes={"node": str(node)}) for node in range(2)]
    lines, _ = lines_of([(twice[0], 1), (twice[1], 2), (twice[1], 3)])
    assert [(line.tags, line.fields) for line in lines] == [({}, {"x": 1}), ({"node": "1"}, {"x": 2})]


def test_the_states_of_sources_are_told_elsewhere():
    assert lines_of([(STATUS.series(STATUS.name), 1)]) == ([], 0)


def test_fields_that_the_native_plugin_has_are_there_too():
    user, system = (TIME.series(f"cpu.stat.{mode}_usec", 1_000_000) for mode in ("user", "system"))
    limit, period = LIMIT.series("cpu.max.limit"), TIME.series("cpu.max.1", 1_000_000)
    found = fields_of((user, 3), (system, 4), (limit, 50_000 / 100_000), (period, 100_000))
    assert found["cpu.stat.usage_usec"] == 7
    assert (found["cpu.max.0"], found["cpu.max.1"]) == (50_000, 100_000)
    assert "cpu.max.0" not in fields_of((period, 100_000))


@given(st.integers(1, 10**6), st.integers(1000, 10**6))
def test_the_quota_is_what_the_kernel_said(quota, period):
    series = (LIMIT.series("cpu.max.limit"), TIME.series("cpu.max.1", 1_000_000))
    found = fields_of((series[0], quota / period), (series[1], period))
    assert found["cpu.max.0"] == quota


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 2**64, -(2**63) - 1, "x", None])
def test_what_no_line_can_hold_is_left_out_and_counted(value):
    other = LIMIT.series("cpu.effective_limit", attributes={"cgroup.limit.owner": "self"})
    lines, invalid = lines_of([(CURRENT, value), (other, 0.5)])
    assert invalid == 1
    assert [line.fields for line in lines] == [
        {"cpu.effective_limit": 0.5, "cpu.effective_limit.owner": "self"}
    ]
    assert lines_of([(CURRENT, value)]) == ([], 1)


def test_sixty_four_bits_are_unsigned():
    assert fields_of((CURRENT, 2**63)) == {"memory.current": 2**63}


def test_a_long_line_is_split_with_the_same_tags_and_time():
    series = [USAGE.series(f"misc.current.{'r' * 100}{number}") for number in range(1000)]
    layout = Layout(tuple(series))
    written = [line for line, _ in layout.lines("m,a=b", range(1000), 7)]
    assert len(written) > 1
    assert all(len(line.encode()) < influx.LONGEST_LINE for line in written)
    lines = parsed("".join(written))
    assert {(line.measurement, line.tags["a"], line.time_ns) for line in lines} == {("m", "b", 7)}
    assert {key: value for line in lines for key, value in line.fields.items()} == {
        one.source: number for number, one in enumerate(series)
    }


@given(
    st.lists(
        st.tuples(
            st.text(st.characters(exclude_characters="\\", exclude_categories=("C", "Z")), min_size=1),
            st.one_of(st.integers(-(2**65), 2**65), st.floats(), st.integers(0, 1000)),
            st.booleans(),
        ),
        min_size=1,
        unique_by=lambda point: point[0],
    )
)
def test_each_number_is_on_a_line_or_counted(points):
    instruments = {True: USAGE, False: LIMIT}
    named = [(instruments[integer].series(source), value) for source, value, integer in points]
    lines, invalid = lines_of(named)
    assert sum(len(line.fields) for line in lines) + invalid == len(points)
