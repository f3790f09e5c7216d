"""The queue: in order, bounded, and honest about what it drops."""

import random
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cgotel.outputs.otlp.batch import Batch, Record
from cgotel.outputs.otlp.queue import BatchQueue


def batch(items=1, size=0):
    noise = random.Random(items).randbytes(size)
    return Batch.of([Record(b"\x0a" + bytes([0]) + noise, items)])


def test_first_in_first_out_and_given_back_in_front():
    queue = BatchQueue(10_000)
    one, two, three = batch(1), batch(2), batch(3)
    for each in (one, two, three):
        assert queue.put(each) == 0
    assert queue.take(1) is one
    queue.give_back(one)
    assert [queue.take(1) for _ in range(3)] == [one, two, three]
    assert (len(queue), queue.size, queue.items) == (0, 0, 0)


def test_the_oldest_go_when_it_is_full_and_are_counted():
    queue = BatchQueue(2_500)
    assert [queue.put(batch(items, 1000)) for items in (5, 6, 7)] == [0, 0, 5]
    assert queue.items == 13


def test_the_newest_stays_whatever_its_size():
    queue = BatchQueue(100)
    queue.put(batch(1))
    assert queue.put(batch(9, 1000)) == 1
    assert queue.items == 9


def test_taking_joins_up_to_the_most_items():
    queue = BatchQueue(10_000)
    for _ in range(5):
        queue.put(batch(2))
    assert [queue.take(4).items for _ in range(3)] == [4, 4, 2]


def test_what_cannot_be_joined_for_now_is_kept(monkeypatch):
    queue = BatchQueue(10_000)
    for _ in range(3):
        queue.put(batch(2))
    size = queue.size
    with monkeypatch.context() as full:
        full.setattr("gzip.compress", Mock(side_effect=MemoryError))
        with pytest.raises(MemoryError):
            queue.take(4)
    assert (queue.items, queue.size) == (6, size)


def test_clear_leaves_nothing():
    queue = BatchQueue(100)
    queue.put(batch(3))
    queue.clear()
    assert (len(queue), queue.size, queue.items) == (0, 0, 0)


@given(st.lists(st.one_of(st.integers(1, 50), st.none()), max_size=60))
def test_no_item_is_lost_without_being_counted(steps):
    queue = BatchQueue(150)
    put = taken = dropped = 0
    for step in steps:
        if step is not None:
            put += step
            dropped += queue.put(batch(step))
        elif queue:
            taken += queue.take(10).items
        assert put == taken + dropped + queue.items
        assert queue.size <= 150 or len(queue) == 1
