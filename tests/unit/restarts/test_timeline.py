"""Exits are joined from what many sources tell, in whatever order, and each is told once."""

from __future__ import annotations

import time
from itertools import permutations

import pytest
from tests.unit.restarts.said import action, at, emptied, ended, exited, oom_kill, rose, started, workload

from cgotel.evidence import AnyEvidence, Gap, RunEnded
from cgotel.restarts.case import Case
from cgotel.restarts.classify import classify
from cgotel.restarts.timeline import Restart, Timeline

SETTLE = 3.0


def hear(timeline: Timeline, *pieces: AnyEvidence, now: float = 0.0) -> None:
    for piece in pieces:
        timeline.hear(piece, at(now))


def due(timeline: Timeline, now: float, silent: dict[str, str] | None = None) -> list[Case | Restart]:
    return list(timeline.due(at(now), silent or {}))


def test_an_exit_is_held_open_until_it_has_settled() -> None:
    timeline, model = Timeline(SETTLE), workload()
    hear(timeline, started(-10, model), ended(0, model), now=0.1)
    assert timeline.next_due_ns() == at(3.1)
    assert due(timeline, 3.0) == []
    [case] = due(timeline, 3.1)
    assert case.exit.workload == model
    assert case.exit.began_ns == at(-10)
    assert due(timeline, 10) == []


def test_evidence_that_comes_late_or_in_any_order_joins() -> None:
    model = workload()
    pieces = [
        started(-10, model),
        oom_kill(-0.01, model),
        rose(-0.01, model.cgroup, oom=1, oom_kill=1),
        exited(0, model.cgroup, signal=9),
        ended(0.1, model),
    ]
    verdicts = set()
    for order in permutations(pieces[1:]):
        timeline = Timeline(SETTLE)
        hear(timeline, pieces[0], *order)
        [case] = due(timeline, 5)
        verdict = classify(case)
        verdicts.add((verdict.cause, verdict.sureness))
    assert verdicts == {("cgroup_oom", "confirmed")}


def test_what_is_known_from_the_start_completes_what_the_end_tells() -> None:
    timeline, model = Timeline(SETTLE), workload()
    bare = RunEnded(source="docker", time_ns=at(0), workload=workload(pid=None, image=""), code=1)
    hear(timeline, started(-5, model), bare)
    [case] = due(timeline, 5)
    assert (case.exit.workload.pid, case.exit.workload.image) == (model.pid, model.image)


def test_the_same_end_told_twice_is_one_exit() -> None:
    timeline, model = Timeline(SETTLE), workload()
    hear(timeline, started(-5, model), ended(0, model))
    told_again = RunEnded(source="docker", time_ns=at(0), workload=model, began_ns=at(-5), code=137)
    hear(timeline, told_again, now=1)
    assert len(due(timeline, 5)) == 1
    hear(timeline, told_again, now=6)
    assert due(timeline, 20) == []


def test_a_fast_restart_is_told_after_its_exit() -> None:
    timeline, model = Timeline(SETTLE), workload()
    hear(timeline, started(-5, model), ended(0, model, code=1), started(0.1, model))
    case, restart = due(timeline, 5)
    assert isinstance(case, Case)
    assert isinstance(restart, Restart)
    assert restart.started.time_ns == at(0.1)


def test_a_late_restart_carries_the_exit_before_and_what_was_learnt_since() -> None:
    timeline, model, new = Timeline(SETTLE), workload(1), workload(2, image="model:2")
    hear(timeline, started(-50, model), action(-1, model, "kill", 15), ended(0, model, code=143))
    [case] = due(timeline, 4)
    assert classify(case).cause == "requested_stop"
    hear(timeline, action(30, new, "create"), started(31, new), now=31)
    [restart] = due(timeline, 31)
    assert isinstance(restart, Restart)
    assert classify(restart.case).cause == "redeployed"


def test_fifty_ends_at_once_are_fifty_exits_in_order() -> None:
    timeline = Timeline(SETTLE)
    for number in range(50):
        hear(timeline, ended(number / 1000, workload(number, f"m{number}"), code=1))
    assert [c.exit.ended_ns for c in due(timeline, 5)] == [at(n / 1000) for n in range(50)]


@pytest.mark.parametrize(
    ("silent", "exits"),
    [({}, 0), ({"docker": "permission denied"}, 1)],
)
def test_a_container_that_no_runtime_speaks_for_ends_with_its_cgroup(
    silent: dict[str, str], exits: int
) -> None:
    timeline, model = Timeline(SETTLE), workload()
    hear(timeline, exited(0, model.cgroup, pid=7, code=0), exited(0.1, model.cgroup, signal=9))
    hear(timeline, emptied(0.11, model.cgroup), now=0.2)
    found = due(timeline, 5, silent)
    assert len(found) == exits
    for case in found:
        assert (case.exit.workload.runtime, case.exit.workload.pid) == ("cgroup", model.pid)
        assert case.exit.signal == 9


def test_the_cgroup_in_which_a_run_lived_has_the_exit_and_not_those_around_it() -> None:
    timeline = Timeline(SETTLE)
    hear(timeline, exited(0, "/ai/job1", code=3), emptied(0.01, "/ai"), emptied(0.01, "/ai/job1"))
    [case] = due(timeline, 5)
    assert (case.exit.workload.cgroup, case.exit.code) == ("/ai/job1", 3)


def test_the_past_is_marked() -> None:
    timeline, model = Timeline(SETTLE), workload()
    hear(timeline, ended(-3600, model), now=0)
    [case] = due(timeline, 5)
    assert case.exit.past


def test_a_plain_cgroup_whose_runs_follow_each_other_has_an_exit_for_each() -> None:
    timeline = Timeline(SETTLE)
    ends: list[Case | Restart] = []
    for number in range(6):
        hear(
            timeline,
            exited(number, "/loop", pid=100 + number, code=3),
            emptied(number + 0.01, "/loop"),
            now=number,
        )
        ends += due(timeline, number)
    hear(timeline, emptied(9, "/loop", removed=True), now=9)
    ends += due(timeline, 30)
    assert [(c.exit.workload.pid, c.exit.code) for c in ends if isinstance(c, Case)] == [
        (100 + number, 3) for number in range(6)
    ]


def test_what_ends_in_the_root_is_no_evidence_of_what_lives_below() -> None:
    timeline, model = Timeline(SETTLE), workload()
    hear(timeline, exited(-0.1, "/", pid=7, code=1), exited(-0.1, "/system.slice", pid=8, code=1))
    hear(
        timeline, rose(-0.1, "/system.slice", oom=1), exited(0, model.cgroup, code=1), ended(0, model, code=1)
    )
    [case] = due(timeline, 5)
    assert isinstance(case, Case)
    assert {getattr(e, "pid", None) for e in case.evidence if e.cgroup in ("/", "/system.slice")} == {None}
    assert [e.cgroup for e in case.evidence if e.source == "cgroup_events"] == ["/system.slice"]


def test_a_workload_that_forks_all_day_keeps_what_is_nearest() -> None:
    timeline, model = Timeline(SETTLE), workload()
    for number in range(2000):
        hear(timeline, exited(-600 + number / 4, model.cgroup, pid=10_000 + number, code=0))
    hear(timeline, ended(0, model, code=1))
    [case] = due(timeline, 5)
    assert isinstance(case, Case)
    assert len(case.evidence) <= 520
    assert min(e.time_ns for e in case.evidence) > at(-300)


def test_what_is_seldom_is_not_crowded_out_by_what_is_frequent() -> None:
    timeline, model = Timeline(SETTLE), workload()
    request = action(-400, model, "stop")
    gap = Gap(source="kernel_log", time_ns=at(200), since_ns=at(-200), reason="records were lost")
    main = exited(-399, model.cgroup, code=1)
    hear(timeline, request, gap, main)
    for number in range(2000):
        hear(timeline, exited(-300 + number / 8, model.cgroup, pid=10_000 + number, code=0))
    hear(timeline, ended(0, model, code=1))
    [case] = due(timeline, 5)
    assert isinstance(case, Case)
    assert all(piece in case.evidence for piece in (request, gap, main))


def test_what_was_judged_at_once_is_not_left_open_for_the_next_life() -> None:
    """A plain cgroup has waited already when it is found that no runtime speaks for it."""
    timeline = Timeline(SETTLE)
    hear(timeline, emptied(0, "/job"))
    assert len(due(timeline, 10)) == 1
    assert list(timeline.opened({})) == []


def test_ten_thousand_ends_at_once_are_joined_in_time() -> None:
    timeline = Timeline(SETTLE)
    several = [workload(number, f"w{number}", pid=number + 1) for number in range(10_000)]
    began = time.process_time()
    hear(timeline, *(started(-5, one) for one in several))
    hear(timeline, *(ended(0, one, code=1) for one in several))
    hear(timeline, *(started(1, one) for one in several))
    hear(timeline, *(emptied(0, f"/jobs/{number}") for number in range(10_000)))
    found = due(timeline, 10)
    assert len([one for one in found if isinstance(one, Restart)]) == 10_000
    assert len(found) == 30_000
    assert time.process_time() - began < 20  # where each is looked up among all others, over a minute
