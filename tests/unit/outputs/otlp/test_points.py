"""What the output says of itself."""

from tests.unit.outputs.otlp.senders import DELIVERED, Clock, Script, batch, play, sender

from cgotel.outputs.otlp.answer import Outcome, partial_success
from cgotel.outputs.otlp.points import DROPPED, INSTRUMENTS, QUEUE_USAGE, REQUESTS, SUCCESS_AGE, points


def said(senders, invalid=0):
    return {(s.instrument, *dict(s.attributes).values()): value for s, value in points(senders, invalid)}


def test_before_the_first_request_all_counts_are_zero_and_the_age_is_not_known():
    found = said([sender(Script(DELIVERED), Clock())])
    assert set(found.values()) == {0}
    assert not any(key[0] is SUCCESS_AGE for key in found)


def test_everything_that_happened_is_said():
    clock = Clock()
    one = sender(Script(partial_success(4, "x"), DELIVERED), clock)
    one.put(batch(10))
    play(one, clock, 1)
    one.put(batch(10))
    clock.now += 5
    found = said([one], invalid=7)
    assert found[REQUESTS, "metrics", Outcome.DELIVERED.value] == 1
    assert found[DROPPED, "metrics", "rejected"] == 4
    assert found[DROPPED, "metrics", "invalid"] == 7
    assert found[QUEUE_USAGE, "metrics"] == one.queued_bytes > 0
    assert found[SUCCESS_AGE, "metrics"] == 5


def test_the_series_are_the_same_objects_each_time():
    one = sender(Script(DELIVERED), Clock())
    assert [s for s, _ in points([one], 0)] == [s for s, _ in points([one], 0)]


def test_no_metric_name_is_the_namespace_of_another():
    names = [instrument.name for instrument in INSTRUMENTS]
    assert not [(a, b) for a in names for b in names if b.startswith(a + ".")]
