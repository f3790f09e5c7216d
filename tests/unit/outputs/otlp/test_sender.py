"""The sender, step by step on a clock that the test moves, then as a thread."""

import logging
import threading

import pytest
from tests.unit.outputs.otlp.senders import (
    DELIVERED,
    REFUSED_CONNECTION,
    TARGET,
    Clock,
    Script,
    batch,
    play,
    sender,
)

from cgotel.outputs.otlp.answer import Outcome, partial_success, refused, retry, too_large
from cgotel.outputs.otlp.queue import BatchQueue
from cgotel.outputs.otlp.retry import Backoff
from cgotel.outputs.otlp.sender import Sender


@pytest.fixture
def clock():
    return Clock()


def test_a_request_is_sent_once_and_counted(clock):
    transport = Script(DELIVERED)
    one = sender(transport, clock)
    assert one.pause() is None
    assert one.success_age_s() is None
    one.put(batch(3))
    assert play(one, clock, 5) == [0.0]
    clock.now += 7
    assert (one.requests, one.success_age_s()) == ({Outcome.DELIVERED: 1}, 7)
    assert transport.timeouts == [TARGET.timeout_s]


def test_what_can_be_tried_again_is_with_growing_pauses_and_in_order(clock):
    transport = Script(REFUSED_CONNECTION, REFUSED_CONNECTION, REFUSED_CONNECTION, DELIVERED)
    one = sender(transport, clock)
    first, second = batch(1), batch(2)
    one.put(first)
    one.put(second)
    assert play(one, clock, 9) == [0, 1, 2, 4, 0]
    assert transport.sent == [first] * 4 + [second]
    assert one.dropped == {"rejected": 0}


def test_nothing_is_sent_before_its_time(clock):
    transport = Script(REFUSED_CONNECTION)
    one = sender(transport, clock)
    one.put(batch(1))
    one.turn()
    one.turn()
    assert len(transport.sent) == 1
    assert one.pause() == 1


def test_a_receiver_says_when_to_come_back(clock):
    one = sender(Script(retry("429 Too Many Requests", 17.0), DELIVERED), clock)
    one.put(batch(1))
    assert play(one, clock, 9) == [0, 17]


def test_a_request_is_given_up_after_its_time_and_the_next_has_its_own(clock):
    transport = Script(REFUSED_CONNECTION)
    one = sender(transport, clock, retry_for_s=10)
    one.put(batch(5))
    one.put(batch(6))
    play(one, clock, 4)
    assert one.dropped["given_up"] == 5
    assert [b.items for b in transport.sent] == [5, 5, 5, 5]
    assert one.pause() == 8
    play(one, clock, 1)
    assert transport.sent[-1].items == 6


def test_what_is_refused_is_dropped_and_counted(clock):
    one = sender(Script(refused("400 Bad Request"), DELIVERED), clock)
    one.put(batch(5))
    one.put(batch(6))
    assert play(one, clock, 9) == [0, 0]
    assert one.dropped["refused"] == 5
    assert one.requests == {Outcome.REFUSED: 1, Outcome.DELIVERED: 1}


def test_what_is_too_large_is_halved_until_it_fits(clock):
    transport = Script(too_large("413"), too_large("413"), DELIVERED)
    one = sender(transport, clock)
    one.put(batch(1, 2, 3, 4))
    play(one, clock, 9)
    assert [b.counts for b in transport.sent] == [(1, 2, 3, 4), (1, 2), (1,), (2,), (3, 4)]
    assert one.dropped["refused"] == 0


def test_what_is_too_large_alone_is_dropped(clock):
    one = sender(Script(too_large("413")), clock)
    one.put(batch(9))
    play(one, clock, 9)
    assert one.dropped["refused"] == 9


def test_partial_success_is_counted_each_time_and_told_once(clock, caplog):
    caplog.set_level(logging.INFO)
    one = sender(Script(partial_success(4, "too old"), partial_success(4, "too old"), DELIVERED), clock)
    for _ in range(3):
        one.put(batch(10))
    play(one, clock, 9)
    assert one.dropped["rejected"] == 8
    assert [m.partition("): ")[2] for m in caplog.messages] == [
        "not all points were taken: too old",
        "delivered",
    ]


@pytest.mark.parametrize(("said", "counted"), [(2**56, 10), (-3, 0), (10, 10)])
def test_no_more_is_rejected_than_was_sent(clock, said, counted):
    one = sender(Script(partial_success(said, "")), clock)
    one.put(batch(4, 6))
    play(one, clock, 1)
    assert one.dropped["rejected"] == counted


def test_trouble_is_told_when_it_changes_and_when_it_ends_and_never_with_headers(clock, caplog):
    caplog.set_level(logging.INFO)
    script = Script(REFUSED_CONNECTION, REFUSED_CONNECTION, retry("503"), retry("503"), DELIVERED)
    one = sender(script, clock)
    one.put(batch(1))
    play(one, clock, 9)
    assert [m.partition("): ")[2] for m in caplog.messages] == [
        "Connection refused; kept, and tried again",
        "503; kept, and tried again",
        "delivered",
    ]
    assert "secret" not in caplog.text + repr(TARGET)


def test_a_full_queue_drops_the_oldest_counts_it_and_says_so(clock, caplog):
    one = sender(Script(DELIVERED), clock, limit=len(batch(1).packed))
    for items in (1, 2, 3):
        one.put(batch(items))
    assert one.dropped["queue_full"] == 3
    assert len(caplog.messages) == 1
    assert one.queued_bytes == len(batch(3).packed)


def test_a_fault_of_the_transport_may_pass_and_costs_no_request(clock):
    one = sender(Script(MemoryError("oops"), DELIVERED), clock)
    one.put(batch(5))
    one.put(batch(6))
    play(one, clock, 9)
    assert one.requests == {Outcome.RETRY: 1, Outcome.DELIVERED: 2}


def test_a_fault_that_does_not_pass_is_given_up_like_any_other(clock):
    one = sender(Script(ZeroDivisionError("oops")), clock, retry_for_s=10)
    one.put(batch(5))
    play(one, clock, 9)
    assert one.dropped["given_up"] == 5


def test_log_records_travel_together(clock):
    transport = Script(DELIVERED)
    one = sender(transport, clock, limit=100_000, most_items=512)
    for _ in range(600):
        one.put(batch(1))
    play(one, clock, 9)
    assert [b.items for b in transport.sent] == [512, 88]


def test_closing_tries_at_once_unless_the_receiver_asked_to_wait(clock):
    one = sender(Script(REFUSED_CONNECTION), clock)
    one.put(batch(1))
    play(one, clock, 3)
    one.stop(5)
    assert one.pause() == 0
    waiting = sender(Script(retry("503", 60.0)), clock)
    waiting.put(batch(1))
    waiting.turn()
    waiting.stop(5)
    assert waiting.pause() == 60


def test_closing_leaves_a_request_only_the_time_that_is_left(clock):
    transport = Script(DELIVERED)
    one = sender(transport, clock)
    one.put(batch(1))
    one.stop(5)
    clock.now += 2
    one.turn()
    assert transport.timeouts == [3]


def test_what_was_not_sent_by_the_end_is_counted(clock):
    transport = Script(DELIVERED)
    one = sender(transport, clock)
    one.put(batch(5))
    one.put(batch(6))
    one.stop(0)
    assert one.join() == 11
    assert one.dropped["closed"] == 11
    assert transport.closed.is_set()


class Gate(Script):
    """Takes what is sent only once it is told to; closing it ends the wait."""

    def __init__(self):
        super().__init__(DELIVERED)
        self.entered = threading.Event()
        self.open = threading.Event()

    def send(self, batch, timeout_s):
        self.entered.set()
        assert self.open.wait(20)
        return super().send(batch, timeout_s)

    def close(self):
        super().close()
        self.open.set()


def as_thread(transport):
    one = Sender(TARGET, transport, BatchQueue(10_000), 300.0)
    one.start()
    return one


def test_the_thread_sends_what_is_there_before_it_ends():
    transport = Script(DELIVERED)
    one = as_thread(transport)
    for items in (1, 2, 3):
        one.put(batch(items))
    one.stop(20)
    assert one.join() == 0
    assert [b.items for b in transport.sent] == [1, 2, 3]


def test_putting_never_waits_for_a_receiver_that_hangs():
    transport = Gate()
    one = as_thread(transport)
    one.put(batch(1))
    assert transport.entered.wait(20)
    for _ in range(100):
        one.put(batch(1))
    transport.open.set()
    one.stop(20)
    assert one.join() == 0
    assert one.requests[Outcome.DELIVERED] == 101


def test_a_receiver_that_hangs_is_left_when_time_is_up():
    transport = Gate()
    one = as_thread(transport)
    one.put(batch(5))
    assert transport.entered.wait(20)
    one.put(batch(6))
    one.stop(0)
    assert one.join() == 11
    one._thread.join(20)
    assert not one._thread.is_alive()
    assert one.requests == {}


def test_the_thread_ends_at_once_when_waiting_is_longer_than_what_is_left():
    transport = Script(retry("503", 100.0))
    one = as_thread(transport)
    one.put(batch(5))
    one.stop(50)
    assert one.join() == 5
    assert not one._thread.is_alive()


class Woken(Exception):  # noqa: N818
    """In place of a wait."""


class Patience(threading.Condition):
    """Tells how long it was to wait, and does not."""

    def wait(self, timeout=None):
        raise Woken(timeout)


def test_no_wait_is_longer_than_the_system_can_count(clock):
    one = sender(Script(retry("503", 1e300)), clock, retry_for_s=1e300)
    one._backoff = Backoff(1e300)
    one._changed = Patience()
    one.put(batch(5))
    one.turn()
    with pytest.raises(Woken) as woken:
        one._wait()
    assert woken.value.args == (86_400,)
    one.stop(1e300)
    assert one._closing_at == clock.now + 86_400


def test_a_fault_of_its_own_costs_one_request_and_not_the_thread(caplog):
    transport = Script(None, DELIVERED)
    one = as_thread(transport)
    one.put(batch(5))
    one.put(batch(6))
    one.stop(20)
    assert one.join() == 0
    assert [b.items for b in transport.sent] == [5, 6]
    assert one.dropped["given_up"] == 5
    assert "AttributeError" in caplog.text
