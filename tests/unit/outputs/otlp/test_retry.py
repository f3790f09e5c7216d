"""Back-off: exponential, with jitter, and obedient."""

import pytest

from cgotel.outputs.otlp.retry import LONGEST_S, Backoff


def backoff(draw=0.5, patience_s=300.0):
    return Backoff(patience_s, lambda: draw)


def test_it_doubles_up_to_the_longest():
    middle = backoff()
    assert [middle.next_s() for _ in range(8)] == [1, 2, 4, 8, 16, LONGEST_S, LONGEST_S, LONGEST_S]


@pytest.mark.parametrize(("draw", "expected"), [(0.0, 0.8), (1.0, 1.2)])
def test_jitter_is_a_fifth(draw, expected):
    assert backoff(draw).next_s() == pytest.approx(expected)


def test_a_success_starts_it_anew():
    again = backoff()
    again.next_s()
    again.next_s()
    again.reset()
    assert again.next_s() == 1


@pytest.mark.parametrize(("asked", "expected"), [(3, 3), (0, 1), (0.5, 1), (10**9, 300)])
def test_a_receiver_is_never_asked_earlier_than_it_said(asked, expected):
    assert backoff().next_s(asked) == expected
