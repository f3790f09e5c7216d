"""A plugin's reading can be relied on, or says what is wrong with it."""

import pytest

from cgotel import sound
from cgotel.model import Entity, Instrument, Reading

COUNT = Instrument("a.count", "gauge", "1", "a").series("a")
SHARE = Instrument("a.share", "gauge", "1", "a", "double").series("b")
ENTITY = Entity("cgroup", "a", {"name": "a"})


@pytest.mark.parametrize(
    "points", [[], [(COUNT, 3)], [(SHARE, 0.5), (COUNT, 0)], [(SHARE, 1)], [(COUNT, 2**70)]]
)
def test_numbers_that_were_measured_are_taken(points):
    sound.check(Reading.of(ENTITY, 1, points))


@pytest.mark.parametrize(
    ("reading", "message"),
    [
        (5, "gave 5 for a Reading"),
        (Reading.of("host", 1, []), "gave 'host' for an Entity"),
        (Reading.of(Entity("cgroup", 7), 1, []), "kind and key of an Entity must be text"),
        (Reading.of(Entity("cgroup", "a", ["x"]), 1, []), "must be a mapping"),
        (Reading.of(Entity("cgroup", "a", {"x": None}), 1, []), "attribute 'x' of 'a' cannot be None"),
        (Reading(ENTITY, 1, (COUNT,), [1, 2]), "1 series, and 2 values"),
        (Reading(ENTITY, 1, ("a",), [1]), "gave 'a' for a Series"),
        (
            Reading.of(ENTITY, 1, [(COUNT, None)]),
            "a.count cannot be None: what was not measured has no point",
        ),
        (Reading.of(ENTITY, 1, [(COUNT, "12")]), "a.count cannot be '12'"),
        (Reading.of(ENTITY, 1, [(COUNT, True)]), "a.count cannot be True"),
        (Reading.of(ENTITY, 1, [(SHARE, float("nan"))]), "a.share cannot be nan"),
        (Reading.of(ENTITY, 1, [(SHARE, float("inf"))]), "a.share cannot be inf"),
        (Reading.of(ENTITY, 1, [(COUNT, 1.5)]), "number='double' takes it"),
    ],
)
def test_anything_else_is_named(reading, message):
    with pytest.raises((TypeError, ValueError), match=r"\S") as fault:
        sound.check(reading)
    assert message in str(fault.value)


def test_an_instrument_of_no_kind_cannot_be_made():
    with pytest.raises(ValueError, match="kind 'gage' is no counter"):
        Instrument("a.b", "gage", "1", "a")
    with pytest.raises(ValueError, match="number 'float' is neither int nor double"):
        Instrument("a.b", "gauge", "1", "a", "float")


def test_attributes_given_for_a_divisor_are_refused():
    with pytest.raises(TypeError, match="divisor must be a whole number"):
        Instrument("a.b", "gauge", "1", "a").series("c", {"state": "running"})
