"""Work in a thread of its own: nobody waits longer than it likes."""

import threading

import pytest

from cgotel.collectd.background import Background


@pytest.fixture
def gate():
    """Work that waits until it is let through."""
    return threading.Event()


@pytest.fixture
def made(request):
    def make(work, done=lambda: None):
        background = Background(work, done)
        background.start()
        request.addfinalizer(lambda: background.stop(5))
        return background

    return make


def test_what_is_asked_for_is_taken_once(made):
    numbers = iter(range(9))
    background = made(lambda: next(numbers))
    assert background.ask()
    assert background.take(5) == 0
    assert background.take(0) is None
    assert background.ask()
    assert background.take(5) == 1


def test_what_is_late_is_taken_later(made, gate):
    background = made(lambda: gate.wait(5))
    background.ask()
    assert background.take(0) is None
    assert background.busy_s() > 0
    assert background.ask() is False
    gate.set()
    assert background.take(5) is True
    assert background.busy_s() == 0


def test_a_fault_costs_one_piece_only(made, caplog):
    faults = iter([ValueError("broken"), None])

    def work():
        if (fault := next(faults)) is not None:
            raise fault
        return "well"

    background = made(work)
    background.ask()
    assert background.take(5) is None
    background.ask()
    assert background.take(5) == "well"
    assert "broken" in caplog.text


def test_it_lets_go_when_it_stops(made):
    closed = threading.Event()
    background = made(lambda: 1, closed.set)
    assert background.stop(5)
    assert closed.is_set()


def test_what_blocks_is_left_behind(made, gate):
    background = made(lambda: gate.wait(30))
    background.ask()
    assert background.stop(0) is False
    gate.set()
    assert background.stop(5)
