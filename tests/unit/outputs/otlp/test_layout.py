"""The layout's bytes, against the same metrics built by opentelemetry-proto's classes alone."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.metrics.v1.metrics_pb2 import ScopeMetrics
from tests.unit.outputs.otlp.material import ALL, CURRENT, NR_PERIODS, USED, USER, VALUES

from cgotel.model import Instrument
from cgotel.outputs.otlp.layout import Layout, by_instrument, stamps

STAMPS = stamps(30, 10, 20)
KINDS = ("gauge", "updowncounter", "counter")
NANOSECONDS = st.integers(0, 2**64 - 1)
TEXT = st.text(max_size=200)


def layout(series=ALL, delta=False):
    return Layout(series, by_instrument(series), delta)


def scope_metrics(layout, values, stamped=STAMPS):
    return ScopeMetrics.FromString(layout.fill(values, stamped))


def by_hand(series, values, time_ns, began_ns, since_ns, delta):
    """What the layout should say, by nothing but the generated classes."""
    scope = ScopeMetrics()
    metrics = {}
    for one, raw in zip(series, values, strict=True):
        instrument = one.instrument
        if instrument not in metrics:
            metrics[instrument] = scope.metrics.add(
                name=instrument.name, description=instrument.description, unit=instrument.unit
            )
        metric = metrics[instrument]
        if instrument.kind == "gauge":
            point = metric.gauge.data_points.add(time_unix_nano=time_ns)
        else:
            counts = instrument.kind == "counter"
            start_ns = since_ns if counts else began_ns
            point = metric.sum.data_points.add(
                time_unix_nano=time_ns, start_time_unix_nano=min(start_ns, time_ns)
            )
            metric.sum.is_monotonic = counts
            metric.sum.aggregation_temporality = 1 if counts and delta else 2
        for key, value in one.attributes:
            point.attributes.add(key=key).value.string_value = value
        if instrument.number == "int":
            point.as_int = one.convert(raw)
        else:
            point.as_double = one.convert(raw)
    return scope


@st.composite
def instruments(draw):
    kind, number = draw(st.sampled_from(KINDS)), draw(st.sampled_from(("int", "double")))
    return Instrument(draw(TEXT), kind, draw(TEXT), draw(TEXT), number)


@st.composite
def filled_series(draw):
    """Series with values, several of an instrument and in any order."""
    some = draw(st.lists(instruments(), min_size=1, max_size=4))
    rows = []
    for _ in range(draw(st.integers(1, 12))):
        instrument = draw(st.sampled_from(some))
        attributes = draw(st.dictionaries(TEXT, TEXT, max_size=3))
        series = instrument.series("f.k", draw(st.sampled_from((1, 100, 1_000_000))), attributes)
        whole = st.integers(-(2**63), 2**63 - 1)
        real = st.floats(allow_nan=False, allow_infinity=False)
        rows.append((series, draw(whole if instrument.number == "int" else st.one_of(whole, real))))
    return rows


@given(filled_series(), NANOSECONDS, NANOSECONDS, NANOSECONDS, st.booleans())
def test_filling_a_layout_equals_building_the_messages(rows, time_ns, began_ns, since_ns, delta):
    series = [s for s, _ in rows]
    values = [v for _, v in rows]
    stamped = stamps(time_ns, began_ns, since_ns)
    filled = layout(series, delta).fill(values, stamped)
    if filled is None:  # finite values whose sum is not
        filled, unfit = layout(series, delta).salvage(values, stamped)
        assert unfit == []
    assert ScopeMetrics.FromString(filled) == by_hand(series, values, time_ns, began_ns, since_ns, delta)


@given(filled_series(), st.data())
def test_a_layout_is_filled_again_without_a_trace_of_the_time_before(rows, data):
    series = [s for s, _ in rows]
    kept = layout(series)
    first, second = [[data.draw(st.integers(0, 2**40)) for _ in series] for _ in range(2)]
    kept.fill(first, stamps(5, 3, 3))
    assert scope_metrics(kept, second, stamps(7, 4, 4)) == by_hand(series, second, 7, 4, 4, False)


def test_the_size_is_known_before():
    assert layout().size == len(layout().fill(VALUES, STAMPS))


def test_a_start_that_is_not_known_is_zero_and_none_is_after_the_point():
    assert (
        scope_metrics(layout([USER]), [1], stamps(9, None, None))
        .metrics[0]
        .sum.data_points[0]
        .start_time_unix_nano
        == 0
    )
    assert (
        scope_metrics(layout([USER]), [1], stamps(9, 11, 11))
        .metrics[0]
        .sum.data_points[0]
        .start_time_unix_nano
        == 9
    )


@pytest.mark.parametrize(
    ("series", "value"),
    [
        (USED, math.nan),
        (USED, math.inf),
        (USED, -math.inf),
        (USED, None),
        (USED, "7"),
        (USED, 10**400),
        (CURRENT, 2**63),
        (CURRENT, -(2**63) - 1),
        (CURRENT, 0.5),
        (CURRENT, math.nan),
        (CURRENT, None),
    ],
)
def test_a_value_without_a_place_on_the_wire_costs_its_own_point_only(series, value):
    both = [USER, series, NR_PERIODS]
    assert layout(both).fill([1, value, 3], STAMPS) is None
    rest, unfit = layout(both).salvage([1, value, 3], STAMPS)
    assert unfit == [series]
    assert ScopeMetrics.FromString(rest) == by_hand([USER, NR_PERIODS], [1, 3], 30, 10, 20, False)


def test_nothing_is_left_when_no_value_fits():
    assert layout([USED]).salvage([math.nan], STAMPS) == (b"", [USED])


def test_a_whole_float_serves_for_an_integer():
    rest, unfit = layout([CURRENT]).salvage([3.0], STAMPS)
    assert unfit == []
    assert ScopeMetrics.FromString(rest).metrics[0].sum.data_points[0].as_int == 3


@given(filled_series())
def test_the_last_points_carry_no_value_and_the_same_identity(rows):
    series = [s for s, _ in rows]
    ended = ScopeMetrics.FromString(layout(series).stale(STAMPS))
    alive = by_hand(series, [0 for _ in series], 30, 10, 20, False)
    for metric in alive.metrics:
        for point in (metric.sum if metric.HasField("sum") else metric.gauge).data_points:
            point.ClearField("as_int")
            point.ClearField("as_double")
            point.flags = 1  # DATA_POINT_FLAGS_NO_RECORDED_VALUE_MASK
    assert ended == alive
