"""The loop: steady, deaf to faults, and it hands everything to everyone."""

import threading

from cgotel.agent import Agent
from cgotel.clock import Instant
from cgotel.contract import Collector, CollectorSettings, Output, Settings
from cgotel.kernel.roots import Roots
from cgotel.model import Entity, Event, Instrument, Reading, Severity
from cgotel.sweeper import Sweeper

COUNT = Instrument("test.count", "gauge", "1", "a")
EVENT = Event("cgotel.test", 1, 2, Severity.INFO, Entity("cgroup", "a"), "body", "uid-1")


class One(Collector):
    name = "one"

    def collect(self, tick):
        yield Reading.of(Entity("cgroup", "a"), tick.time_ns, [(COUNT.series("s"), 1)])

    def events(self):
        return [EVENT]


class Kept(Output):
    name = "kept"

    def __init__(self, stop_after=1, stop=None):
        super().__init__(Settings())
        self.sweeps, self.events, self.closed = [], [], []
        self._stop, self._stop_after = stop, stop_after

    def write(self, sweep):
        self.sweeps.append(sweep)
        if self._stop is not None and len(self.sweeps) == self._stop_after:
            self._stop.set()

    def emit(self, event):
        self.events.append(event)

    def points(self):
        return [(COUNT.series("kept"), 7)]

    def close(self, timeout_s=5.0):
        self.closed.append(timeout_s)


class Broken(Output):
    name = "broken"

    def write(self, sweep):
        raise OSError("no space left")

    def points(self):
        raise ValueError("no")


def sweeper():
    return Sweeper([One(CollectorSettings(), Roots())], 100)


def test_a_sweep_reaches_every_output_with_the_agents_own_reading():
    kept = Kept()
    Agent(sweeper(), [Broken(Settings()), kept], 10).sweep()
    first, own = kept.sweeps[0].readings
    assert first.entity.key == "a"
    assert own.entity.kind == "agent"
    assert own.metric("test.count") == 7
    assert own.metric("cgotel.sweep.points") == 1
    assert own.metric("process.memory.usage") > 2**20
    assert kept.events == [EVENT]


def test_an_output_that_raises_is_counted_and_asked_again():
    kept = Kept()
    agent = Agent(sweeper(), [Broken(Settings()), kept], 10)
    agent.sweep()
    agent.sweep()
    own = kept.sweeps[1].readings[-1]
    assert own.metric("cgotel.output.errors", cgotel_output_name="broken") == 2
    assert own.metric("cgotel.output.errors", cgotel_output_name="kept") == 0


def test_the_loop_ends_when_told_and_closes_its_outputs():
    stop = threading.Event()
    kept = Kept(stop_after=3, stop=stop)
    Agent(sweeper(), [kept], 0.001).run(stop)
    assert len(kept.sweeps) == 3
    assert kept.closed == [5.0]


def test_beats_that_were_missed_are_left_out(caplog):
    stop = threading.Event()
    kept = Kept(stop_after=2, stop=stop)
    # the clock jumps 25 s during the first sweep: beats at 10 and 20 are gone
    clock = iter([0, 0, 25, 25, 25, 26, 26])

    def ticking():
        seconds = next(clock)
        return Instant(seconds * 10**9, seconds * 10**9)

    agent = Agent(sweeper(), [kept], 0.001, clock=ticking)
    agent._interval_ns = 10 * 10**9
    waits = []
    stop.wait = waits.append
    agent.run(stop)
    assert waits[0] == 5  # until 30
    assert "took longer than the interval" in caplog.text
