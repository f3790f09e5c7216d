"""A collector fails for itself alone."""

import pytest

from cgotel.clock import Instant
from cgotel.contract import Collector, CollectorSettings, SourceStatus, State, Unavailable
from cgotel.kernel.roots import Roots
from cgotel.model import Entity, Instrument, Reading
from cgotel.sweeper import Sweeper

SERIES = Instrument("a.b", "gauge", "1", "a").series("s")
SECOND = 10**9


class Scripted(Collector):
    """Gives what its script says, sweep after sweep: entity keys, or an exception to raise."""

    def __init__(self, name, *script, starts=(None,)):
        super().__init__(CollectorSettings(), Roots())
        self.name = name
        self.script = list(script)
        self.starts = list(starts)
        self.closed = 0

    def start(self):
        outcome = self.starts.pop(0) if len(self.starts) > 1 else self.starts[0]
        if outcome is not None:
            raise outcome

    def collect(self, tick):
        for item in self.script.pop(0):
            if isinstance(item, Exception):
                raise item
            yield Reading.of(Entity("cgroup", item), tick.time_ns, [(SERIES, 1)])

    def close(self):
        self.closed += 1


def keys(sweep):
    return [reading.entity.key for reading in sweep.readings]


def at(seconds):
    return Instant(seconds * SECOND, seconds * SECOND)


def test_one_that_raises_costs_only_what_it_had_not_given(caplog):
    sweeper = Sweeper([Scripted("bad", ["a", RuntimeError("boom"), "b"]), Scripted("good", ["c"])], 100)
    assert keys(sweeper.sweep(at(1))) == ["a", "c"]
    assert [running.faults.count for running in sweeper.running] == [1, 0]
    assert "collector bad: RuntimeError: boom" in caplog.text


def test_what_a_broken_sweep_did_not_reach_has_not_ended():
    sweeper = Sweeper([Scripted("c", ["a", "b"], [RuntimeError("x")], ["a"])], 100)
    assert sweeper.sweep(at(1)).ended == ()
    assert sweeper.sweep(at(2)).ended == ()
    assert [entity.key for entity in sweeper.sweep(at(3)).ended] == ["b"]


def test_an_unavailable_collector_is_tried_again_with_back_off():
    status = SourceStatus("late", State.ABSENT, "no library", "install it")
    late = Scripted("late", ["a"], starts=(Unavailable(status), Unavailable(status), None))
    sweeper = Sweeper([late], 100)
    assert keys(sweeper.sweep(at(0))) == []
    assert next(sweeper.sources()) == status
    assert keys(sweeper.sweep(at(9))) == []
    assert len(late.starts) == 2  # not tried before its time
    assert keys(sweeper.sweep(at(10))) == []
    assert keys(sweeper.sweep(at(29))) == []
    assert keys(sweeper.sweep(at(30))) == ["a"]


def test_a_start_that_raises_anything_is_a_failed_source():
    sweeper = Sweeper([Scripted("odd", starts=(ZeroDivisionError("by zero"),))], 100)
    sweeper.sweep(at(0))
    status = next(sweeper.sources())
    assert (status.state, status.reason) == (State.FAILED, "ZeroDivisionError: by zero")


def test_dropped_series_are_told_once(caplog):
    sweeper = Sweeper([Scripted("many", ["a", "b"], ["a", "b"])], 1)
    assert keys(sweeper.sweep(at(1))) == ["a"]
    sweeper.sweep(at(2))
    assert sweeper.budget.dropped == 1
    assert caplog.text.count("1 series are left out") == 1


def test_a_reading_that_cannot_be_relied_on_costs_itself_only(caplog):
    class Odd(Scripted):
        def collect(self, tick):
            yield 5
            yield from super().collect(tick)

    sweeper = Sweeper([Odd("odd", ["a"]), Scripted("good", ["b"])], 100)
    assert keys(sweeper.sweep(at(1))) == ["a", "b"]
    assert "collector odd: TypeError: gave 5 for a Reading" in caplog.text


def test_one_that_exits_does_not_take_the_agent_along():
    sweeper = Sweeper([Scripted("quits", [SystemExit(3)]), Scripted("good", ["b"])], 100)
    assert keys(sweeper.sweep(at(1))) == ["b"]


@pytest.mark.parametrize("collectors", [1, 2])
def test_close_reaches_every_collector(collectors):
    made = [Scripted(str(n), []) for n in range(collectors)]
    made[0].close = lambda: 1 / 0
    Sweeper(made, 1).close()
    assert [c.closed for c in made[1:]] == [1] * (collectors - 1)
