"""What the files of `kernel_tree` mean, worked out by hand: names, units, kinds, values, attributes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.peers.kernel_tree import MIB, SLICE
from tests.peers.received import Point

COUNTER = ("sum", True, "cumulative")
UPDOWN = ("sum", False, "cumulative")
GAUGE = ("gauge", False, None)


@dataclass(frozen=True, slots=True)
class Row:
    """One data point; an int value must arrive as an integer, a float as a double."""

    kind: tuple[str, bool, str | None]
    name: str
    unit: str
    value: int | float
    attributes: Mapping[str, Any] = field(default_factory=dict)

    def found_in(self, points: list[Point]) -> bool:
        """Whether exactly this arrived, exactly once."""
        same = [p for p in points if (p.name, p.attributes) == (self.name, self.attributes)]
        return [(p.kind, p.monotonic, p.temporality) for p in same] == [self.kind] and all(
            (p.unit, p.value, type(p.value)) == (self.unit, self.value, type(self.value)) for p in same
        )


def _by_mode(name: str, user: float, system: float) -> list[Row]:
    return [
        Row(COUNTER, name, "s", user, {"cpu.mode": "user"}),
        Row(COUNTER, name, "s", system, {"cpu.mode": "system"}),
    ]


def _stalled(name: str, some: float, full: float) -> list[Row]:
    return [
        Row(COUNTER, name, "s", seconds, {"system.linux.pressure.stall_type": stall_type})
        for stall_type, seconds in (("some", some), ("full", full))
    ]


def _by(
    kind: tuple[str, bool, str | None], name: str, unit: str, attribute: str, values: Mapping[str, int]
) -> list[Row]:
    return [Row(kind, name, unit, value, {attribute: key}) for key, value in values.items()]


_BY_SLICE = {"cgroup.limit.owner": SLICE}
_READ = {"system.device": "sda", "disk.io.direction": "read"}
_WRITE = {"system.device": "sda", "disk.io.direction": "write"}
_BOUNDARIES = {"low": 0, "high": 3, "max": 12, "oom": 2, "oom_kill": 1, "oom_group_kill": 0}

CONTAINER_ROWS = [
    *_by_mode("container.cpu.time", 5.0, 2.5),
    Row(COUNTER, "cgroup.cpu.periods", "{period}", 200),
    Row(COUNTER, "cgroup.cpu.throttled.periods", "{period}", 40),
    Row(COUNTER, "cgroup.cpu.throttled.time", "s", 1.25),
    Row(COUNTER, "cgroup.cpu.throttled.local_time", "s", 6.0),
    Row(COUNTER, "cgroup.cpu.ancestor.throttled.time", "s", 4.75, _BY_SLICE),
    Row(COUNTER, "cgroup.cpu.bursts", "{burst}", 2),
    Row(COUNTER, "cgroup.cpu.burst.time", "s", 0.03),
    Row(GAUGE, "cgroup.cpu.period", "s", 0.1),
    Row(GAUGE, "cgroup.cpu.weight", "1", 79),
    Row(UPDOWN, "cgroup.cpu.effective_limit", "{cpu}", 1.5, _BY_SLICE),
    *_stalled("cgroup.cpu.pressure.time", 3.5, 1.25),
    *_stalled("cgroup.memory.pressure.time", 0.4, 0.3),
    *_stalled("cgroup.io.pressure.time", 0.9, 0.0),
    Row(UPDOWN, "container.memory.usage", "By", 300 * MIB),
    Row(UPDOWN, "container.memory.working_set", "By", 240 * MIB),
    Row(UPDOWN, "container.memory.rss", "By", 180 * MIB),
    Row(UPDOWN, "container.memory.available", "By", 784 * MIB),
    Row(GAUGE, "cgroup.memory.peak", "By", 350 * MIB),
    Row(UPDOWN, "cgroup.memory.limit", "By", 1024 * MIB),
    Row(GAUGE, "cgroup.memory.utilization", "1", 300 / 1024),
    Row(UPDOWN, "cgroup.memory.effective_limit", "By", 512 * MIB, _BY_SLICE),
    Row(UPDOWN, "cgroup.memory.headroom", "By", 112 * MIB, _BY_SLICE),
    Row(UPDOWN, "cgroup.paging.usage", "By", 4096),
    *_by(
        UPDOWN,
        "cgroup.memory.type.usage",
        "By",
        "cgroup.memory.type",
        {"anon": 180 * MIB, "file": 100 * MIB, "kernel": 16 * MIB, "sock": 8192},
    ),
    *_by(
        UPDOWN,
        "cgroup.memory.lru.usage",
        "By",
        "cgroup.memory.lru",
        {"inactive_file": 60 * MIB, "active_file": 40 * MIB},
    ),
    Row(
        UPDOWN,
        "cgroup.memory.slab.usage",
        "By",
        12288,
        {"system.memory.linux.slab.state": "reclaimable"},
    ),
    Row(UPDOWN, "cgroup.memory.shmem", "By", 65536),
    Row(COUNTER, "container.paging.faults", "{fault}", 40, {"system.paging.fault.type": "major"}),
    Row(COUNTER, "cgroup.memory.refaults", "{page}", 7, {"cgroup.memory.type": "file"}),
    *_by(COUNTER, "cgroup.memory.events", "{event}", "cgroup.memory.event", _BOUNDARIES),
    *_by(COUNTER, "cgroup.memory.local_events", "{event}", "cgroup.memory.event", _BOUNDARIES),
    Row(COUNTER, "container.disk.io", "By", 4096, _READ),
    Row(COUNTER, "container.disk.io", "By", 8192, _WRITE),
    Row(COUNTER, "cgroup.disk.operations", "{operation}", 1, _READ),
    Row(COUNTER, "cgroup.disk.operations", "{operation}", 2, _WRITE),
    Row(GAUGE, "cgroup.disk.limit.io", "By/s", 2097152, _READ),
    Row(GAUGE, "cgroup.disk.limit.operations", "{operation}/s", 120, _WRITE),
    Row(UPDOWN, "cgroup.pid.count", "{pid}", 17),
    Row(COUNTER, "cgroup.pid.limit_hits", "{event}", 5),
    Row(UPDOWN, "cgroup.process.count", "{process}", 2),
    *_by(UPDOWN, "cgroup.status", "1", "cgroup.state", {"populated": 1, "frozen": 0}),
]

# `max` is no limit, and an absent file is no zero.
ABSENT_FROM_CONTAINER = {
    "cgroup.cpu.limit",
    "cgroup.memory.high",
    "cgroup.paging.limit",
    "cgroup.pid.limit",
    "cgroup.pid.peak",
    "cgroup.irq.pressure.time",
}

SERVICE_ROWS = [
    *_by_mode("cgroup.cpu.time", 0.3, 0.2),
    Row(UPDOWN, "cgroup.cpu.limit", "{cpu}", 0.5),
    Row(UPDOWN, "cgroup.cpu.effective_limit", "{cpu}", 0.5, {"cgroup.limit.owner": "self"}),
    Row(UPDOWN, "cgroup.memory.usage", "By", 2 * MIB),
    Row(UPDOWN, "cgroup.pid.limit", "{pid}", 64),
    Row(UPDOWN, "cgroup.pid.headroom", "{pid}", 61, {"cgroup.limit.owner": "self"}),
]

ROOT_ROWS = _by_mode("cgroup.cpu.time", 60.0, 30.0)

_STALL_SOME = {"system.linux.pressure.stall_type": "some"}

HOST_ROWS = [
    Row(UPDOWN, "system.memory.limit", "By", 8192 * MIB),
    Row(UPDOWN, "system.memory.linux.available", "By", 6144 * MIB),
    *_by(
        UPDOWN,
        "system.memory.usage",
        "By",
        "system.memory.state",
        {"used": 2048 * MIB, "free": 1024 * MIB, "buffers": 32 * MIB, "cached": 2048 * MIB},
    ),
    Row(COUNTER, "system.process.created", "{process}", 51670),
    Row(COUNTER, "system.memory.linux.oom_kills", "{process}", 2),
    Row(GAUGE, "system.cpu.load_average.1m", "{thread}", 0.5),
    Row(COUNTER, "system.cpu.linux.pressure.time", "s", 536.955642, _STALL_SOME),
    *_stalled("system.memory.linux.pressure.time", 1.0, 0.25),
    *_stalled("system.io.linux.pressure.time", 2.0, 0.5),
]
