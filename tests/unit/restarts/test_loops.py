"""A workload that ends again and again is one loop, told at 3 ends, then at 10, 30, 100."""

from __future__ import annotations

from tests.unit.restarts.said import at, ended, oom_kill, started, workload

from cgotel.restarts.case import Case, Exit
from cgotel.restarts.loops import Loops
from cgotel.restarts.verdict import Verdict


def case(seconds: float, lived: float = 5.0) -> Case:
    model = workload()
    exit_ = Exit(workload=model, ended_ns=at(seconds), began_ns=at(seconds - lived), code=137)
    return Case(exit=exit_, evidence=(started(-5, model), ended(seconds, model), oom_kill(seconds, model)))


def verdict(cause: str = "cgroup_oom") -> Verdict:
    return Verdict(cause=cause, sureness="confirmed", because="", limit_cgroup=workload().cgroup)  # type: ignore[arg-type]


def test_a_loop_begins_with_the_third_end_and_is_told_ever_more_seldom() -> None:
    loops = Loops()
    told = []
    for number in range(120):
        one = case(number * 25.0)
        loop = loops.note(one, verdict())
        assert (loop is not None) == (number >= 2)
        if loop is not None and loops.is_news(one):
            told.append(loop.count)
            assert loop.period_s == 25.0
    assert told == [3, 10, 30, 100]


def test_a_limit_that_can_never_hold_it_is_called_that() -> None:
    loops = Loops()
    loops.note(case(0), verdict())
    loops.note(case(25), verdict())
    loop = loops.note(case(50), verdict())
    assert loop is not None
    assert loop.hopeless == "it can never fit its memory limit of 128 MiB: 3 runs in a row died at it early"


def test_long_runs_that_end_at_a_limit_are_no_hopeless_loop() -> None:
    loops = Loops()
    for number in range(3):
        loop = loops.note(case(number * 800, lived=700), verdict())
    assert loop is not None
    assert loop.hopeless == ""


def test_another_cause_a_long_peace_and_a_gentle_end_begin_anew() -> None:
    loops = Loops()
    loops.note(case(0), verdict())
    loops.note(case(25), verdict())
    assert loops.note(case(50), verdict("crash")) is None
    loops.note(case(75), verdict("crash"))
    assert loops.note(case(75 + 4000), verdict("crash")) is None
    loops.note(case(4100), verdict("crash"))
    assert loops.note(case(4125), verdict("completed")) is None
    assert not loops.holds(case(4125))
