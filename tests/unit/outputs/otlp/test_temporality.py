"""Deltas: what adds up to the counter, and what begins anew."""

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.outputs.otlp.material import (
    BEGAN_NS,
    CURRENT,
    NEXT_NS,
    NOW_NS,
    NR_PERIODS,
    USER,
    WEB,
    reading,
)

from cgotel.model import Entity, Instrument
from cgotel.outputs.otlp.temporality import Deltas

MILLISECONDS = Instrument("a.ms", "counter", "ms", "").series("a.us", 1000)


def values(deltas, entity, *readings):
    found, _ = deltas.of(entity, list(readings))
    return [dict(one.points) for one in found]


def test_what_was_there_before_the_output_only_sets_the_ground():
    deltas = Deltas(since_ns=NOW_NS)
    assert values(deltas, WEB, reading(series=[USER, CURRENT], values=[7, 5])) == [{CURRENT: 5}]
    assert values(deltas, WEB, reading(time_ns=NEXT_NS, series=[USER, CURRENT], values=[9, 4])) == [
        {USER: 2, CURRENT: 4}
    ]


def test_what_began_since_counts_from_its_own_beginning():
    deltas = Deltas(since_ns=BEGAN_NS)
    found, since_ns = deltas.of(WEB, [reading(series=[USER], values=[7])])
    assert dict(found[0].points) == {USER: 7}
    assert since_ns == BEGAN_NS


def test_without_a_known_beginning_the_first_value_sets_the_ground():
    nobody = Entity("host", "h")
    assert values(Deltas(since_ns=0), nobody, reading(nobody, series=[USER], values=[7])) == [{}]


def test_a_fall_is_a_beginning_at_zero():
    deltas = Deltas(since_ns=NOW_NS)
    values(deltas, WEB, reading(series=[USER], values=[100]))
    assert values(deltas, WEB, reading(time_ns=NEXT_NS, series=[USER], values=[30])) == [{USER: 30}]


def test_a_counter_that_was_away_sets_the_ground_again():
    deltas = Deltas(since_ns=NOW_NS)
    both, one = [USER, NR_PERIODS], [USER]
    values(deltas, WEB, reading(series=both, values=[1, 1]))
    values(deltas, WEB, reading(series=one, values=[2]))
    assert values(deltas, WEB, reading(series=both, values=[3, 9])) == [{USER: 1}]
    assert values(deltas, WEB, reading(series=both, values=[4, 11])) == [{USER: 1, NR_PERIODS: 2}]


def test_readings_of_one_entity_do_not_disturb_each_other():
    deltas = Deltas(since_ns=NOW_NS)
    user, periods = reading(series=[USER], values=[1]), reading(series=[NR_PERIODS], values=[1])
    values(deltas, WEB, user, periods)
    assert values(deltas, WEB, periods, user) == [{NR_PERIODS: 0}, {USER: 0}]


def test_the_series_stay_the_same_tuple_when_nothing_is_left_out():
    deltas = Deltas(since_ns=NOW_NS)
    first = reading()
    deltas.of(WEB, [first])
    (again,), _ = deltas.of(WEB, [first])
    assert again.series is first.series


def test_what_ended_is_forgotten():
    deltas = Deltas(since_ns=NOW_NS)
    deltas.of(WEB, [reading()])
    deltas.forget((WEB.kind, WEB.key))
    deltas.forget((WEB.kind, WEB.key))
    assert deltas._seen == {}


@given(st.lists(st.integers(0, 10_000), min_size=2))
def test_deltas_add_up_to_what_the_counter_says(steps):
    deltas = Deltas(since_ns=0)
    raw = total = 0
    for step in steps:
        raw += step
        (found,), _ = deltas.of(WEB, [reading(series=[MILLISECONDS], values=[raw])])
        total += sum(series.convert(value) for series, value in found.points)
    assert total == MILLISECONDS.convert(raw)
