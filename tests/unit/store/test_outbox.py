"""Events wait on disk until each output has taken them: none lost, none told twice, bounded."""

from __future__ import annotations

from pathlib import Path

import pytest

from cgotel.model import Entity, Event
from cgotel.store import Database, Outbox


def event(number: int) -> Event:
    return Event(
        name="cgotel.container.exit",
        time_ns=number,
        observed_ns=number + 1,
        severity=9,
        entity=Entity("container", f"docker:{number}", {"container.id": "a", "n": number}, 5),
        body=f"event {number}",
        uid=f"exit:{number}",
        attributes={"words": ("a", "b"), "share": 0.5, "sure": True},
    )


def test_an_event_waits_for_each_output_until_it_was_taken(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    database = Database(path)
    outbox = Outbox(database, ["otlp", "influx"])
    assert outbox.add(event(1))
    assert outbox.add(event(2))
    [first, second] = outbox.waiting("otlp")
    assert (first.event, second.event) == (event(1), event(2))
    outbox.taken("otlp", first.number)
    database.close()
    again = Outbox(Database(path), ["otlp", "influx"])
    assert [w.event for w in again.waiting("otlp")] == [event(2)]
    assert [w.event for w in again.waiting("influx")] == [event(1), event(2)]
    assert again.count() == 3


def test_the_same_uid_is_kept_once_even_after_it_was_taken(tmp_path: Path) -> None:
    outbox = Outbox(Database(tmp_path / "agent.db"), ["otlp"])
    assert outbox.add(event(1))
    outbox.taken("otlp", outbox.waiting("otlp")[0].number)
    assert not outbox.add(event(1))
    assert outbox.waiting("otlp") == []


def test_the_oldest_are_dropped_and_counted(tmp_path: Path) -> None:
    outbox = Outbox(Database(tmp_path / "agent.db"), ["otlp"], most=10)
    for number in range(25):
        outbox.add(event(number))
    assert [w.event.time_ns for w in outbox.waiting("otlp")] == list(range(15, 25))
    assert outbox.dropped == 15


def test_what_waits_for_an_output_that_is_gone_is_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    database = Database(path)
    Outbox(database, ["otlp", "influx"]).add(event(1))
    database.close()
    outbox = Outbox(Database(path), ["influx"])
    assert outbox.count() == 1


def test_a_full_disk_loses_nothing_that_memory_holds(tmp_path: Path) -> None:
    database = Database(tmp_path / "agent.db")
    outbox = Outbox(database, ["otlp"], most=500)
    with database.transaction() as connection:
        connection.execute("PRAGMA max_page_count = 1")
    for number in range(300):
        outbox.add(event(number))
    spilled = [waiting for waiting in outbox.waiting("otlp", most=500) if waiting.number < 0]
    assert outbox.count() == 300
    assert len([waiting for waiting in outbox.waiting("otlp", most=10) if waiting.number < 0]) == 10
    assert spilled[-1].event == event(299)
    for waiting in spilled:
        outbox.taken("otlp", waiting.number)
    assert [waiting for waiting in outbox.waiting("otlp") if waiting.number < 0] == []


def test_a_full_disk_is_told_once_though_what_is_there_can_still_be_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    database = Database(tmp_path / "agent.db")
    outbox = Outbox(database, ["otlp"])
    outbox.add(event(1))
    with database.transaction() as connection:
        connection.execute("PRAGMA max_page_count = 1")
    for number in range(2, 300):
        outbox.add(event(number))
        outbox.waiting("otlp")
    assert database.faults > 100
    assert len(caplog.records) == 1
