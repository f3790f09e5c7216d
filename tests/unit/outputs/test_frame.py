"""A whole frame: title, host, table, and one line for what is not measured."""

import time

import pytest
from tests.unit.outputs.sweeps import NOON_NS, cgroup, reading, sweep

from cgotel.contract import SourceStatus, State
from cgotel.losses import losses
from cgotel.model import Entity, Event, Severity
from cgotel.outputs.frame import event_line, frame, not_measured
from cgotel.outputs.screen import plain
from cgotel.outputs.summary import summarize
from cgotel.outputs.text import columns


@pytest.fixture(autouse=True)
def utc(monkeypatch):
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def framed(summary, lost=(), width=None):
    return frame(summary, summary.rows, losses(lost), width, plain)


HYBRID = "its controller is not on cgroup v2: hybrid mount"
LOST = [
    *(SourceStatus(f"memory.{file}", State.ABSENT, HYBRID) for file in ("max", "high", "current")),
    SourceStatus("io.stat", State.ABSENT, HYBRID),
    SourceStatus("irq.pressure", State.ABSENT, "needs Linux 6.1"),
    SourceStatus("cpu.stat", State.OK),
]


def test_a_frame():
    host = Entity("host", "vm")
    web = cgroup("/system.slice/web.service")
    numbers = {"pressure.memory.some.total": 0, "pressure.memory.full.total": 0, "pressure.cpu.some.total": 0}
    before = sweep(reading(host, numbers), reading(web, {"cpu.pressure.some.total": 0}))
    after = sweep(
        reading(
            host,
            {
                "pressure.memory.some.total": 400_000,
                "pressure.memory.full.total": 200_000,
                "pressure.cpu.some.total": 64_000,
                "meminfo.MemAvailable": 3 * 2**30,
                "meminfo.MemTotal": 8 * 2**30,
            },
        ),
        reading(web, {"cpu.pressure.some.total": 1_000_000, "cpu.usage": 0.25, "cgroup.procs.count": 1}),
        at_s=2,
    )
    assert framed(summarize(after, before), LOST, width=72) == [
        "cgotel 12:00:02   over 2.0s   1 of 1 cgroups, most held back first",
        "host stalled   cpu 3.2%   memory 20% (full 10%)   io -",
        "memory available 3.00G of 8.00G",
        "",
        "                  stalled, %           thr %  cpus   memory",
        "cgroup              cpu    mem     io  share   used   used  limit   left",
        "web.service          50      -      -      -   0.25      -      -      -",
        "",
        "not measured: memory, io.stat (its controller is not on cgroup v2:",
        "hybrid mount) and one more; cgotel doctor says all",
    ]


def test_of_a_single_sweep_the_title_says_that_these_are_totals():
    [title, *_] = framed(summarize(sweep(reading(cgroup("/a"), {}))))
    assert "totals since each cgroup began" in title


def test_without_any_cgroup_it_says_so():
    assert "no cgroup with processes in it" in framed(summarize(sweep()))


@pytest.mark.parametrize("width", [60, 100, 200, 400])
def test_no_line_is_wider_than_the_terminal(width):
    summary = summarize(sweep(*(reading(cgroup(f"/{'x' * n}.service"), {}) for n in (1, 30, 200))))
    lost = [SourceStatus(f"{'y' * 20}{n}.file", State.ABSENT, "r" * 50) for n in range(20)]
    assert max(map(columns, framed(summary, lost, width))) <= width


def test_what_is_not_measured_is_one_line_with_what_costs_most():
    assert not_measured(losses(LOST)) == (
        "not measured: memory, io.stat (its controller is not on cgroup v2: hybrid mount) and one more; "
        "cgotel doctor says all"
    )
    assert not_measured([]) == ""


def test_irq_is_shown_where_the_kernel_counts_it():
    host = sweep(reading(Entity("host", "vm"), {"pressure.irq.full.total": 3_000_000}))
    assert "irq 3.0s" in framed(summarize(host))[1]


@pytest.mark.parametrize(
    ("entity", "who"),
    [(cgroup("/system.slice/web.service"), "web.service"), (Entity("gpu", "GPU-7"), "GPU-7")],
)
def test_an_event_is_one_line_whatever_its_body(entity, who):
    event = Event("cgotel.oom.kill", NOON_NS, NOON_NS, Severity.ERROR, entity, "killed\n\x1b[2Jit", "uid")
    assert event_line(event) == rf"12:00:00 ERROR cgotel.oom.kill {who}: killed\n\x1b[2Jit"
