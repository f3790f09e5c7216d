"""Every event reaches every output, now or later, in order and once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.unit.store.test_outbox import event

from cgotel.contract import Output, Settled
from cgotel.model import Event
from cgotel.postman import Postman
from cgotel.store import Database, Outbox


class Recording(Output):
    name = "recording"

    def __init__(self) -> None:
        super().__init__(None)
        self.taken: list[Event] = []
        self.broken = False

    def emit(self, event: Event) -> None:
        if self.broken:
            raise OSError("nobody there")
        self.taken.append(event)


class Later(Recording):
    """Says later whether it took an event."""

    name = "later"

    def __init__(self) -> None:
        super().__init__()
        self.open: list[tuple[Event, Settled]] = []

    def deliver(self, event: Event, settled: Settled) -> None:
        self.open.append((event, settled))


def guarded(output: Output, act: Callable[[], None]) -> bool:
    try:
        act()
    except OSError:
        return False
    return True


def postman(database: Database, *outputs: Output) -> Postman:
    return Postman(Outbox(database, [o.name for o in outputs]), outputs, guarded)


def test_an_event_is_brought_at_once_and_once() -> None:
    output = Recording()
    one = postman(Database(None), output)
    one.post(event(1))
    one.post(event(1))
    one.round()
    assert output.taken == [event(1)]


def test_a_broken_output_gets_it_later_and_holds_up_no_other() -> None:
    well, ill = Recording(), Recording()
    ill.name = "ill"  # type: ignore[misc]
    ill.broken = True
    one = postman(Database(None), ill, well)
    one.post(event(1))
    one.post(event(2))
    assert well.taken == [event(1), event(2)]
    ill.broken = False
    one.round()
    assert ill.taken == [event(1), event(2)]


def test_one_over_which_an_output_always_raises_is_given_up() -> None:
    output = Recording()
    output.broken = True
    one = postman(Database(None), output)
    one.post(event(1))
    for _ in range(10):
        one.round()
    output.broken = False
    one.post(event(2))
    assert output.taken == [event(2)]


def test_what_is_on_its_way_is_not_offered_again_until_it_failed() -> None:
    output = Later()
    one = postman(Database(None), output)
    one.post(event(1))
    one.round()
    [(_, settled)] = output.open
    settled(False)
    one.round()
    assert [e for e, _ in output.open] == [event(1), event(1)]
    output.open[-1][1](True)
    one.round()
    assert len(output.open) == 2


def test_what_was_not_taken_before_the_end_is_taken_in_the_next_life(tmp_path: Path) -> None:
    first = Database(tmp_path / "agent.db")
    postman(first, Later()).post(event(1))
    first.close()
    output = Later()
    postman(Database(tmp_path / "agent.db"), output).round()
    assert [e for e, _ in output.open] == [event(1)]
