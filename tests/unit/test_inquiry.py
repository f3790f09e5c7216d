"""From evidence to events, with real threads and a store: told once, counted, kept with its evidence."""

from __future__ import annotations

import queue
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.unit.restarts.said import ended, exited, oom_kill, started, workload

from cgotel.clock import Timeline
from cgotel.contract import (
    Bookmark,
    Report,
    Roots,
    SourceStatus,
    State,
    Stop,
    Unavailable,
    Watcher,
    WatcherSettings,
)
from cgotel.evidence import AnyEvidence, Evidence, GpuXid, ProcessExit, RunEnded, Workload
from cgotel.inquiry import Inquiry
from cgotel.model import Event, Severity
from cgotel.restarts.facts import Facts
from cgotel.restarts.rule import Rule
from cgotel.restarts.rules import RULES
from cgotel.restarts.verdict import Finding
from cgotel.store import Database, Incidents
from cgotel.store.incidents import find

TIMELINE = Timeline()


class Scripted(Watcher):
    """Reports what a test gives it."""

    name = "kernel_log"

    def __init__(self) -> None:
        super().__init__(WatcherSettings(), Roots.discover(), TIMELINE, Bookmark())
        self.script: queue.Queue[Evidence] = queue.Queue()

    def watch(self, report: Report, stop: Stop) -> None:
        while not stop.wait(0.01):
            while not self.script.empty():
                report(self.script.get())


class Denied(Watcher):
    name = "signals"

    def start(self) -> None:
        raise Unavailable(SourceStatus("signals", State.DENIED, "needs root"))


class Told:
    def __init__(self) -> None:
        self.events: list[Event] = []
        self._changed = threading.Condition()

    def __call__(self, event: Event) -> None:
        with self._changed:
            self.events.append(event)
            self._changed.notify_all()

    def until(self, enough: Callable[[list[Event]], Any]) -> list[Event]:
        with self._changed:
            assert self._changed.wait_for(lambda: enough(self.events), 20), self.events
            return list(self.events)


@contextmanager
def inquiring(
    database: Database, rules: Iterable[Rule] = RULES
) -> Iterator[tuple[Inquiry, Callable[..., None], Told]]:
    told, watcher = Told(), Scripted()
    denied = Denied(WatcherSettings(), Roots.discover(), TIMELINE, Bookmark())
    inquiry = Inquiry([watcher, denied], rules, TIMELINE, Incidents(database), told, settle_s=0.2)
    inquiry.start()

    def report(*pieces: AnyEvidence) -> None:
        for piece in pieces:
            watcher.script.put(piece)

    try:
        yield inquiry, report, told
    finally:
        inquiry.close()


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> None:
    """`said` counts seconds from this moment."""
    monkeypatch.setattr("tests.unit.restarts.said.T0", TIMELINE.now())


@pytest.mark.usefixtures("now")
def test_an_exit_is_judged_told_counted_and_kept(tmp_path: Path) -> None:
    database, model = Database(tmp_path / "agent.db"), workload()
    with inquiring(database) as (inquiry, report, told):
        report(
            started(-5, model),
            oom_kill(-0.01, model),
            exited(0, model.cgroup, signal=9),
            ended(0.05, model),
            started(0.1, model),
        )
        events = told.until(lambda events: len(events) >= 3)
        readings = inquiry.readings(1)
    assert [event.name for event in events] == [
        "cgotel.oom.kill",
        "cgotel.container.exit",
        "cgotel.container.restart",
    ]
    for event in events[1:]:
        assert event.attributes["cgotel.restart.reason"] == "cgroup_oom"
        assert "signals: needs root" in event.attributes["cgotel.restart.missing"]
        assert "cgroup_events: not enabled" in event.attributes["cgotel.restart.missing"]
        assert event.attributes["container.id"] == model.id
    [reading] = readings
    assert reading.metric("cgotel.container.restarts", cgotel_restart_reason="cgroup_oom") == 1
    with database.transaction() as connection:
        [incident] = find(connection, "model")
    assert incident.verdict.cause == "cgroup_oom"
    assert oom_kill(-0.01, model).pid in {getattr(e, "pid", None) for e in incident.case.evidence}
    database.close()


@pytest.mark.usefixtures("now")
def test_a_loop_is_told_once_and_not_as_a_flood() -> None:
    model = workload()
    with inquiring(Database(None)) as (_, report, told):
        for number in range(9):
            at = number / 10 - 1
            report(started(at, model), ended(at + 0.05, model, code=1))
        told.until(lambda events: any(e.name == "cgotel.container.restart_loop" for e in events))
    names = [event.name for event in told.events]
    assert names.count("cgotel.container.exit") == 2
    assert names.count("cgotel.container.restart_loop") == 1


@pytest.mark.usefixtures("now")
def test_fifty_deaths_at_once_are_told_within_a_second_beyond_the_settling() -> None:
    with inquiring(Database(None)) as (_, report, told):
        for number in range(50):
            report(ended(0, workload(number, name=f"m{number}"), code=1))
        events = told.until(lambda events: len(events) >= 50)
    assert len({event.uid for event in events}) == 50


def test_what_is_no_evidence_costs_itself_only(caplog: pytest.LogCaptureFixture) -> None:
    model = workload()
    with inquiring(Database(None)) as (_, report, told):
        report("nonsense", ended(0, model, code=1))  # type: ignore[arg-type]
        told.until(len)
    assert "no kind of evidence" in caplog.text


@pytest.mark.usefixtures("now")
def test_what_is_heard_at_the_very_end_is_judged_before_it_closes() -> None:
    told, watcher = Told(), Scripted()
    inquiry = Inquiry([watcher], RULES, TIMELINE, Incidents(Database(None)), told, settle_s=60)
    inquiry.start()
    watcher.script.put(ended(0, workload(), code=1))
    wait_until(watcher.script.empty)
    inquiry.close()
    assert [event.name for event in told.events] == ["cgotel.container.exit"]


@pytest.mark.usefixtures("now")
def test_an_exit_that_the_agent_did_not_live_to_judge_is_judged_in_the_next_life(tmp_path: Path) -> None:
    path, model, watcher = tmp_path / "agent.db", workload(), Scripted()
    first = Database(path)
    killed = Inquiry([watcher], RULES, TIMELINE, Incidents(first), Told(), settle_s=60)
    killed.start()
    for piece in (
        started(-5, model),
        oom_kill(-0.01, model),
        exited(0, model.cgroup, signal=9),
        ended(0, model),
    ):
        watcher.script.put(piece)
    wait_until(lambda: Incidents(first).opened())
    shutil.copy(path, tmp_path / "copy.db")  # what kill -9 would leave
    shutil.copy(path.with_name("agent.db-wal"), tmp_path / "copy.db-wal")
    killed.close()
    first.close()
    with inquiring(Database(tmp_path / "copy.db")) as (_, _report, told):
        [event] = told.until(lambda events: [e for e in events if e.name == "cgotel.container.exit"])[-1:]
    assert event.attributes["cgotel.restart.reason"] == "cgroup_oom"


def wait_until(done: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 20
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _of(other: Workload, **wrong: Any) -> RunEnded:
    fields: dict[str, Any] = {"source": "docker", "time_ns": TIMELINE.now(), "workload": other, "code": 1}
    return RunEnded(**fields | wrong)


@pytest.mark.usefixtures("now")
@pytest.mark.parametrize(
    "garbage",
    [
        lambda _: None,
        lambda other: _of(other, time_ns="noon"),
        lambda other: _of(other, time_ns=1 << 63),
        lambda other: _of(other, time_ns=1 << 70),
        lambda other: _of(other, code=1 << 40),
        lambda other: _of(other, workload=None),
        lambda other: ProcessExit(source="x", time_ns=1, cgroup=7, pid=1),  # type: ignore[arg-type]
        lambda other: ProcessExit(source="x", time_ns=1, pid=[1]),  # type: ignore[arg-type]
    ],
)
def test_a_watcher_that_reports_garbage_costs_no_verdict(
    garbage: Callable[[Workload], Any], caplog: pytest.LogCaptureFixture
) -> None:
    model = workload()
    with inquiring(Database(None)) as (_, report, told):
        report(garbage(workload(2, "other")))
        report(started(-5, model), ended(0.05, model, code=1))
        [event] = told.until(len)
    assert event.entity.key == model.key
    assert "the inquiry into exits" in caplog.text


@pytest.mark.usefixtures("now")
def test_text_that_no_utf8_holds_and_a_name_of_megabytes_are_made_fit_to_be_kept() -> None:
    database = Database(None)
    bad = msgspec.structs.replace(workload(), name="a\udc80" + "b" * 1_000_000)
    with inquiring(database) as (_, report, told):
        report(_of(bad, error="\udcff"))
        [event] = told.until(len)
    assert event.attributes["container.name"] == "a\\udc80" + "b" * 4089
    with database.transaction() as connection:
        [incident] = find(connection)
    assert incident.case.exit.error == "\\udcff"


def _exits(_: Facts) -> list[Finding]:
    raise SystemExit(3)


@pytest.mark.usefixtures("now")
@pytest.mark.parametrize(
    "rule",
    [
        Rule("crash", "bad", -1, (_exits,)),
        Rule("crash", "bad", -1, (lambda _: 5,)),  # type: ignore[arg-type,return-value]
        Rule("crash", "bad", -1, (lambda _: [Finding("x", "y", 1)],), because=lambda _: None),  # type: ignore[arg-type,return-value]
        Rule("crash", "bad", -1, (lambda _: [Finding("x", "y", 1)],), because=lambda _: "\ud800"),
        Rule("bad luck", "bad", -1, (lambda _: [Finding("x", "y", 1)],)),  # type: ignore[arg-type]
    ],
)
def test_a_plugins_rule_that_fails_is_passed_over_and_told(
    rule: Rule, caplog: pytest.LogCaptureFixture
) -> None:
    database, model = Database(None), workload()
    with inquiring(database, [rule, *RULES]) as (_, report, told):
        report(started(-5, model), ended(0.05, model, code=1))
        [event] = told.until(len)
    assert event.attributes["cgotel.restart.reason"] == "application_error"
    assert "rule bad: " in caplog.text
    with database.transaction() as connection:
        assert [incident.verdict.cause for incident in find(connection)] == ["application_error"]


@pytest.mark.usefixtures("now")
def test_an_end_whose_event_was_not_yet_told_when_the_agent_was_killed_is_judged_again(
    tmp_path: Path,
) -> None:
    """What the store holds while the event is told is what a kill -9 at that moment leaves."""
    database, left, model = Database(tmp_path / "agent.db"), Database(tmp_path / "left.db"), workload()
    uids: list[str] = []

    def killed(event: Event) -> None:
        uids.append(event.uid)
        with database.transaction() as here, left.transaction() as there:
            here.backup(there)

    watcher = Scripted()
    first = Inquiry([watcher], RULES, TIMELINE, Incidents(database), killed, settle_s=0.2)
    first.start()
    watcher.script.put(started(-5, model))
    watcher.script.put(ended(0.05, model, code=1))
    wait_until(lambda: uids)
    first.close()
    database.close()
    with inquiring(left) as (_, _report, told):
        [event] = told.until(len)
    assert [event.uid] == uids
    left.close()


@pytest.mark.usefixtures("now")
def test_an_xid_of_the_driver_is_told_where_the_kernel_log_is_not_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    heard = GpuXid(source="nvml", time_ns=TIMELINE.now(), xid=79, device="0000:65:00")
    logged = GpuXid(source="kernel_log", time_ns=TIMELINE.now(), xid=31, device="0000:65:00", pid=7)
    with inquiring(Database(None)) as (_, report, told):
        report(heard, logged)
        told.until(lambda events: [e.attributes["cgotel.gpu.xid"] for e in events] == [31])
    monkeypatch.setattr(Inquiry, "silent", lambda _: {"kernel_log": "needs root"})
    with inquiring(Database(None)) as (_, report, told):
        report(heard)
        told.until(lambda events: [e.attributes["cgotel.gpu.xid"] for e in events] == [79])


@pytest.mark.usefixtures("now")
def test_an_oom_kill_from_before_anyone_watched_wakes_nobody() -> None:
    with inquiring(Database(None)) as (_, report, told):
        report(oom_kill(-3600, workload()), oom_kill(5, workload()))
        [past, present] = told.until(lambda events: len(events) >= 2)
    assert (past.severity, present.severity) == (Severity.INFO, Severity.ERROR)
    assert past.body.endswith("before cgotel watched")
