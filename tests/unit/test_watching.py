"""Watchers run beside each other: one that fails, blocks or cannot serve stops no other."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from cgotel import watching as module
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
from cgotel.evidence import CgroupEmptied, Evidence
from cgotel.watching import Watching

PIECE = CgroupEmptied(source="x", time_ns=1, cgroup="/a")


class One(Watcher):
    """Does in each life what the test wants."""

    def __init__(self, name: str, *lives: Callable[[Report, Stop], None]) -> None:
        super().__init__(WatcherSettings(), Roots.discover(), Timeline(), Bookmark())
        self.name = name  # type: ignore[misc]
        self.lives = iter(lives)
        self.closed = 0

    def watch(self, report: Report, stop: Stop) -> None:
        next(self.lives, wait)(report, stop)

    def close(self) -> None:
        self.closed += 1


def wait(report: Report, stop: Stop) -> None:
    stop.wait()


def tell(report: Report, stop: Stop) -> None:
    report(PIECE)
    stop.wait()


def fail(report: Report, stop: Stop) -> None:
    raise RuntimeError("broken")


def denied(report: Report, stop: Stop) -> None:
    raise Unavailable(SourceStatus("/some/socket", State.DENIED, "permission denied", "run as root"))


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_FIRST_RETRY_S", 0.01)


@contextmanager
def watching(*watchers: Watcher) -> Iterator[tuple[Watching, list[Evidence]]]:
    heard: list[Evidence] = []
    one = Watching(watchers, heard.append)
    one.start()
    try:
        yield one, heard
    finally:
        one.close()


def eventually(done: Callable[[], object]) -> None:
    deadline = time.monotonic() + 20
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def states(one: Watching) -> dict[str, State]:
    return {status.name: status.state for status in one.sources()}


def test_one_that_fails_is_closed_counted_and_started_again() -> None:
    ill, well = One("ill", fail, fail, tell), One("well", tell)
    with watching(ill, well) as (one, heard):
        eventually(lambda: heard == [PIECE, PIECE])
        assert one.faults == {"ill": 2, "well": 0}
        assert states(one) == {"ill": State.OK, "well": State.OK}
        assert ill.closed == 2
    assert (ill.closed, well.closed) == (3, 1)


def test_one_that_cannot_serve_says_why_under_its_own_name() -> None:
    with watching(One("docker", denied, denied, denied, denied, denied, denied)) as (one, _):
        eventually(lambda: states(one) == {"docker": State.DENIED})


def test_one_that_does_not_end_is_left_behind(caplog: pytest.LogCaptureFixture) -> None:
    gate = threading.Event()
    stuck = One("stuck", lambda report, stop: gate.wait() and None)
    one = Watching([stuck], lambda evidence: None)
    one.start()
    eventually(lambda: states(one) == {"stuck": State.OK})
    one.close(timeout_s=0.05)
    assert "watcher stuck did not end" in caplog.text
    gate.set()


def test_a_stop_is_seen_by_asking_by_waiting_and_as_a_descriptor() -> None:
    stop = Stop()
    assert not stop.is_set()
    assert not stop.wait(0)
    other = Stop()
    assert not stop.wait_for(other.fileno(), 0)
    other.set()
    assert stop.wait_for(other.fileno(), 0)
    stop.set()
    assert stop.is_set()
    assert stop.wait(0)
    assert not stop.wait_for(other.fileno(), 0)


def test_many_that_block_for_ever_cost_one_timeout_and_not_one_each(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = threading.Event()
    stuck = [One(f"stuck{number}", lambda report, stop: gate.wait() and None) for number in range(40)]
    for watcher in stuck[:20]:
        monkeypatch.setattr(watcher, "start", gate.wait)
    one = Watching(stuck, lambda evidence: None)
    began = time.monotonic()
    one.start(timeout_s=1.0)
    one.close(timeout_s=1.0)
    assert time.monotonic() - began < 15  # one each would be a minute
    gate.set()


def test_one_that_tells_garbage_of_itself_has_failed_and_stops_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def nonsense(report: Report, stop: Stop) -> None:
        raise Unavailable("no state")  # type: ignore[arg-type]

    ill, odd = One("ill", nonsense, tell), One("odd", wait)
    monkeypatch.setattr(odd, "sources", lambda: iter([None, "ok"]))
    with watching(ill, odd) as (one, heard):
        eventually(lambda: heard == [PIECE])
        assert one.faults["ill"] == 1
        assert states(one) == {"ill": State.OK, "odd": State.OK}
        assert one.faults["odd"] > 0
