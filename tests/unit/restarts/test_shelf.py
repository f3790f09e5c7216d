"""Evidence is found by what it is about, and let go of by age and by number."""

from __future__ import annotations

from tests.unit.restarts.said import at, exited, workload

from cgotel.restarts.shelf import Shelf


def test_the_oldest_go_first_by_number_and_by_age_and_nothing_is_left_of_them() -> None:
    shelf, model = Shelf(keep_s=100, most=50), workload()
    for number in range(80):
        shelf.add(exited(number, model.cgroup, pid=number % 7))
    assert (len(shelf), shelf.dropped) == (50, 30)
    assert [piece.time_ns for piece in shelf.about(model)] == [at(number) for number in range(30, 80)]
    shelf.expire(at(140))
    assert [piece.time_ns for piece in shelf.about(model)] == [at(number) for number in range(40, 80)]
    shelf.expire(at(1000))
    assert list(shelf.about(model)) == []
    assert shelf._by_subject == {}


def test_a_reused_pid_brings_both_its_lives() -> None:
    shelf, model = Shelf(), workload(pid=9)
    for seconds in (0, 50):
        shelf.add(exited(seconds, None, pid=9))
    assert [piece.time_ns for piece in shelf.about(model)] == [at(0), at(50)]
