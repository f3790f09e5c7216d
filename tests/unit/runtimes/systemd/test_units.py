"""States of a unit in the order that PID 1 signals them, and what is told of them."""

from dataclasses import replace

import pytest

from cgotel.clock import Clocks, Timeline
from cgotel.evidence import Gap, RunEnded, RunStarted, UnitResult
from cgotel.runtimes.systemd.states import Details, UnitState
from cgotel.runtimes.systemd.units import Unit

TIMELINE = Timeline(lambda: Clocks(10**18 + 10**12, 10**12, 10**12))
S = 1_000_000  # microseconds

DOWN = UnitState("web.service", "", "inactive", "dead", restarts=0)
UP = UnitState(
    "web.service",
    "i1",
    "active",
    "running",
    main_pid=7,
    last_pid=7,
    began_us=100 * S,
    restarts=0,
    active_us=100 * S,
)
FAILED = replace(
    UP, active="failed", sub="failed", result="exit-code", main_pid=0, ended_us=130 * S, code=1, status=3,
    inactive_us=130 * S,
)  # fmt: skip
WAITING = replace(FAILED, active="activating", sub="auto-restart")
STOPPING = replace(UP, active="deactivating", sub="stop-sigterm")


def told(*states, unit=None):
    unit = unit or Unit("web.service", TIMELINE)
    unit.details = Details("/system.slice/web.service", "stop")
    return [piece for state in states for piece in unit.take(state)]


def kinds(pieces):
    return [type(piece) for piece in pieces]


def at(seconds):
    return 10**18 + seconds * 10**9


def test_a_run_begins_ends_and_has_a_result():
    begun, ended, result = told(DOWN, UP, FAILED)
    assert (begun.time_ns, begun.workload.pid, begun.restart_count) == (at(100), 7, 0)
    assert (ended.time_ns, ended.began_ns, ended.code, ended.signal) == (at(130), at(100), 3, None)
    assert (result.result, result.code, result.oom_policy, result.workload.pid) == ("exit-code", 3, "stop", 7)
    assert {begun.cgroup, ended.cgroup, result.cgroup} == {"/system.slice/web.service"}


def test_the_same_state_twice_tells_nothing_twice():
    assert kinds(told(UP, UP, FAILED, FAILED, FAILED)) == [RunStarted, RunEnded, UnitResult]


def test_states_that_came_late_keep_runs_apart():
    second = replace(UP, invocation="i2", main_pid=8, last_pid=8, began_us=131 * S, restarts=1)
    second_failed = replace(
        FAILED, invocation="i2", last_pid=8, began_us=131 * S, ended_us=132 * S, status=9, restarts=1
    )
    pieces = told(UP, WAITING, second, second_failed)
    assert kinds(pieces) == [RunStarted, RunEnded, UnitResult] * 2
    assert [piece.workload.pid for piece in pieces] == [7, 7, 7, 8, 8, 8]
    assert [piece.code for piece in pieces if isinstance(piece, RunEnded)] == [3, 9]


def test_a_run_whose_end_was_lost_is_a_gap():
    second = replace(UP, invocation="i2", main_pid=8, last_pid=8, began_us=131 * S)
    begun, gap, again = told(UP, second)
    assert (type(begun), type(gap), type(again)) == (RunStarted, Gap, RunStarted)
    assert gap.since_ns == at(100)


def test_a_main_process_that_hands_over_is_no_gap():
    assert kinds(told(UP, replace(UP, main_pid=8, last_pid=8, began_us=110 * S))) == [RunStarted, RunStarted]


@pytest.mark.parametrize(("code", "result"), [(2, "signal"), (3, "core-dump")])
def test_a_signal_is_no_exit_code(code, result):
    _, ended, outcome = told(UP, replace(FAILED, code=code, status=11, result=result))
    assert (ended.code, ended.signal, outcome.code, outcome.signal) == (None, 11, None, 11)


def test_no_result_before_the_exit_is_known():
    """Two properties asked for one after the other may show the unit dead and its process alive."""
    assert kinds(told(UP, replace(UP, active="inactive", sub="dead"))) == [RunStarted]


def test_a_job_belongs_to_the_run_that_it_ended():
    unit = Unit("web.service", TIMELINE)
    told(UP, unit=unit)
    unit.order("restart")
    stopped = replace(FAILED, active="inactive", sub="dead", result="success", code=2, status=15)
    second = replace(UP, invocation="i2", main_pid=8, last_pid=8, began_us=131 * S)
    gone = replace(FAILED, invocation="i2", last_pid=8, began_us=131 * S)
    pieces = told(STOPPING, stopped, second, gone, unit=unit)
    assert [piece.job for piece in pieces if isinstance(piece, UnitResult)] == ["restart", ""]


def test_a_job_after_the_exit_did_not_cause_it():
    unit = Unit("web.service", TIMELINE)
    told(UP, replace(WAITING, sub="stop-post"), unit=unit)
    unit.order("stop")
    assert told(FAILED, unit=unit)[0].job == ""


def test_a_job_too_short_to_be_asked_was_a_stop_where_nothing_failed():
    stopped = replace(FAILED, active="inactive", sub="dead", result="success", code=2, status=15)
    for states, job in (((STOPPING, stopped), "stop"), ((FAILED,), "")):
        unit = Unit("web.service", TIMELINE)
        told(UP, unit=unit)
        unit.order("")
        assert told(*states, unit=unit)[-1].job == job


def test_a_status_of_systemds_own_soon_after_the_start_is_a_failed_start():
    _, ended, _ = told(UP, replace(FAILED, status=203, ended_us=101 * S))
    assert (ended.started, ended.error, ended.code) == (False, "systemd: 203/EXEC", 203)


def test_the_same_status_after_a_day_is_the_programs():
    _, ended, _ = told(UP, replace(FAILED, status=203, ended_us=100 * S + 86400 * S))
    assert (ended.started, ended.error) == (True, "")


def test_a_start_that_never_had_a_main_process():
    ended, result = told(
        DOWN, UnitState("web.service", "i1", "failed", "failed", "timeout", inactive_us=9 * S)
    )
    assert (ended.started, ended.error, ended.time_ns, ended.workload.pid) == (
        False,
        "systemd: timeout",
        at(9),
        None,
    )
    assert result.result == "timeout"


def test_what_is_pending_before_a_start_is_no_end():
    """PID 1 sends a new invocation first and the new state after it (systemd 252 with ExecStartPre)."""
    pending = UnitState("web.service", "i1", "inactive", "dead")
    pre = replace(pending, active="activating", sub="start-pre")
    pieces = told(DOWN, pending, pre, replace(pre, active="failed", sub="failed", result="exit-code"))
    assert kinds(pieces) == [RunEnded, UnitResult]
    assert kinds(told(DOWN, pending, UP, FAILED)) == [RunStarted, RunEnded, UnitResult]


def test_such_a_start_may_show_the_last_runs_figures():
    pieces = told(UP, FAILED, replace(FAILED, invocation="i2", result="resources"))
    assert kinds(pieces[3:]) == [RunEnded, UnitResult]
    assert (pieces[3].started, pieces[3].error) == (False, "systemd: resources")
    assert (pieces[4].code, pieces[4].result) == (None, "resources")


BETWEEN = [
    [WAITING, replace(FAILED, active="inactive", sub="dead")],  # systemd 252
    [
        replace(FAILED, sub="failed-before-auto-restart"),
        WAITING,
        replace(WAITING, sub="auto-restart-queued"),
    ],  # 257
]


@pytest.mark.parametrize("between", BETWEEN)
def test_a_restart_is_not_refused_until_the_unit_fails(between):
    assert kinds(told(UP, *between, between[-1])) == [RunStarted, RunEnded, UnitResult]


@pytest.mark.parametrize("between", BETWEEN)
def test_a_restart_that_the_limit_forbids(between):
    pieces = told(UP, *between, FAILED, FAILED)
    assert kinds(pieces) == [RunStarted, RunEnded, UnitResult, RunEnded]
    refused = pieces[-1]
    assert (type(refused), refused.started, refused.error) == (RunEnded, False, "systemd: start-limit-hit")


def test_a_stop_while_it_waits_for_its_restart_is_none():
    assert kinds(told(UP, WAITING, replace(FAILED, active="inactive", sub="dead"))) == [
        RunStarted,
        RunEnded,
        UnitResult,
    ]


def test_a_oneshot_that_stays_active_has_ended():
    done = replace(UP, sub="exited", main_pid=0, ended_us=101 * S, code=1, status=0)
    assert kinds(told(replace(UP, active="activating", sub="start"), done, done)) == [
        RunStarted,
        RunEnded,
        UnitResult,
    ]


def test_a_condition_that_is_not_met_is_no_run():
    assert told(UnitState("web.service", "i1", "inactive", "dead")) == []


def test_a_daemon_without_a_known_main_process():
    up = UnitState("web.service", "i1", "active", "running", active_us=5 * S)
    begun, ended, result = told(up, replace(up, active="inactive", sub="dead", inactive_us=8 * S))
    assert (begun.time_ns, begun.workload.pid) == (at(5), None)
    assert (ended.time_ns, ended.code, ended.signal, result.result) == (at(8), None, None, "success")


def test_a_unit_that_vanishes_in_the_middle_of_a_run_is_a_gap():
    unit = Unit("web.service", TIMELINE)
    told(UP, unit=unit)
    [gap] = unit.lost("gone")
    assert (gap.since_ns, gap.cgroup) == (at(100), "/system.slice/web.service")
    assert list(unit.lost("gone")) == []


def test_a_scope_of_a_container_is_told_by_its_runtime():
    name = f"docker-{'ab' * 32}.scope"
    pending = UnitState(name, "i1", "inactive", "dead")
    up = replace(pending, active="active", sub="running", active_us=5 * S)
    unit = Unit(name, TIMELINE)
    [result] = [
        p
        for state in (pending, up, replace(up, active="failed", sub="failed", result="oom-kill"))
        for p in unit.take(state)
    ]
    assert (type(result), result.result, result.workload.id) == (UnitResult, "oom-kill", name)
