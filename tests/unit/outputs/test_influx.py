"""The output: a batch a sweep, an event at once, and what it says of itself."""

import logging
import os

import pytest
from tests.unit.outputs.parsed_lines import parsed
from tests.unit.outputs.sweeps import NOON_NS, cgroup, reading, sweep

from cgotel.contract import SourceStatus, State
from cgotel.model import Event, Severity
from cgotel.outputs.influx import InfluxConfig, InfluxOutput

WEB = cgroup("/system.slice/web.service")
SWEEP = sweep(reading(WEB, {"memory.current": 4096}))


@pytest.fixture
def ends():
    ends = os.pipe2(os.O_NONBLOCK)
    yield ends
    os.close(ends[0])


def started(ends, **settings):
    output = InfluxOutput(InfluxConfig(**settings), ends[1])
    output.start()
    return output


def test_a_sweep_and_its_sources_are_one_batch(ends):
    output = started(ends)
    output.sources([SourceStatus("memory.current", State.OK)])
    output.write(SWEEP)
    lines = parsed(os.read(ends[0], 65536).decode())
    assert [line.measurement for line in lines] == ["cgotel_cgroup", "cgotel_source"]
    assert {line.time_ns for line in lines} == {NOON_NS}
    output.close()


def test_an_event_comes_at_once(ends):
    output = started(ends, path_prefix="/sys/fs/cgroup")
    output.emit(Event("cgotel.oom.kill", 1, 2, Severity.ERROR, WEB, "it", "u"))
    [line] = parsed(os.read(ends[0], 65536).decode())
    assert line.tags["path"] == "/sys/fs/cgroup/system.slice/web.service"
    output.close()


def test_dropped_batches_and_points_are_said(ends, caplog):
    caplog.set_level(logging.WARNING)
    output = started(ends, write_timeout=0.001)
    nan = reading(WEB, {"memory.current": float("nan")})
    full = reading(WEB, {"memory.current": 1, **{f"misc.current.{n}": n for n in range(1000)}})
    while not caplog.records:
        output.write(sweep(full, nan))
    output.write(sweep(full))
    points = {series.source: value for series, value in output.points()}
    assert points["cgotel.influx.dropped_batches"] == 2
    assert points["cgotel.influx.invalid_points"] > 0
    assert [record.getMessage() for record in caplog.records] == [
        "a batch is dropped: nobody took it within 0.001 s"
    ]
    os.read(ends[0], 2**20)
    output.close()
    output.close()
    for series, _ in output.points():
        assert series.instrument in output.instruments
