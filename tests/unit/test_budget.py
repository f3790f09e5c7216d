"""The ceiling keeps who is in, and says how much it left out."""

from cgotel.budget import SeriesBudget
from cgotel.model import Entity, Instrument, Reading

GAUGE = Instrument("a.b", "gauge", "1", "a")
SERIES = tuple(GAUGE.series(f"s{n}") for n in range(10))


def reading(key, count):
    return Reading(Entity("cgroup", key), 0, SERIES[:count], [0] * count)


def test_below_the_ceiling_everything_is_admitted_in_order():
    budget = SeriesBudget(10)
    readings = [reading("a", 5), reading("b", 5)]
    assert list(budget.admit(readings)) == readings
    assert budget.dropped == 0


def test_above_it_whole_entities_are_left_out_and_counted():
    budget = SeriesBudget(10)
    admitted = list(budget.admit([reading("a", 5), reading("b", 6), reading("c", 4)]))
    assert [r.entity.key for r in admitted] == ["a", "c"]
    assert budget.dropped == 6


def test_who_is_in_stays_in_though_others_come_before_it():
    budget = SeriesBudget(6)
    list(budget.admit([reading("old", 5)]))
    admitted = list(budget.admit([reading("new", 5), reading("old", 5)]))
    assert [r.entity.key for r in admitted] == ["old"]
    assert budget.dropped == 5


def test_the_place_of_one_that_ended_is_free_again():
    budget = SeriesBudget(6)
    list(budget.admit([reading("a", 5)]))
    list(budget.admit([]))
    assert [r.entity.key for r in budget.admit([reading("b", 6)])] == ["b"]
    assert budget.dropped == 0


def test_two_readings_of_one_entity_share_its_fate():
    budget = SeriesBudget(4)
    admitted = list(budget.admit([reading("a", 2), reading("a", 2), reading("b", 1)]))
    assert [r.entity.key for r in admitted] == ["a", "a"]
    assert budget.dropped == 1
