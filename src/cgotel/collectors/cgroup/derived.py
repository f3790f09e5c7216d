"""What no single file says: working set, rates, the limits in force, processes that came and went."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter
from typing import Literal

from cgotel.collectors.cgroup.limits import InForce
from cgotel.collectors.cgroup.member import Member
from cgotel.collectors.cgroup.tables import Family
from cgotel.collectors.tables import MICROSECONDS
from cgotel.model import Instrument, Number, Point, Series

_OWNER = "cgroup.limit.owner"
_REPORTED = attrgetter(
    "memory_max",
    "memory_high",
    "memory_headroom",
    "memory_high_headroom",
    "swap_max",
    "cpu",
    "pids_max",
    "pids_headroom",
)

Throttled = tuple[tuple[str, Number], ...]
"""Paths of ancestors that have a CPU quota, each with its throttled_usec."""


class Owned(dict[str, Series]):
    """A metric with the cgroup behind the limit as attribute: `self`, `host` or an ancestor's path."""

    def __init__(self, instrument: Instrument, source: str, divisor: int = 1) -> None:
        super().__init__()
        self._instrument = instrument
        self._source = source
        self._divisor = divisor

    def __missing__(self, owner: str) -> Series:
        text = owner.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
        self[owner] = self._instrument.series(self._source, self._divisor, {_OWNER: text})
        return self[owner]


class Derived:
    """The derived metrics of one family of cgroups."""

    def __init__(self, family: Family) -> None:
        self._cpu_usage = family.gauge(
            "cpu.usage", "{cpu}", "CPUs in use on average since the sweep before", "double"
        ).series("cpu.usage")
        self._cpu_utilization = family.gauge(
            "cpu.utilization", "1", "CPU usage as a share of the limit in force", "double"
        ).series("cpu.utilization")
        self._memory_utilization = family.gauge(
            "memory.utilization", "1", "Memory usage as a share of the own limit", "double"
        ).series("memory.utilization")
        self._working_set = family.updown(
            "memory.working_set",
            "By",
            "Usage without inactive file memory, which is reclaimed first",
        ).series("memory.working_set")
        self._available = family.updown(
            "memory.available", "By", "Own limit minus working set; absent without a limit"
        ).series("memory.available")
        self._rss = family.updown("memory.rss", "By", "Anonymous memory").series("memory.rss")
        self._minor_faults = family.counter("paging.faults", "{fault}", "Page faults").series(
            "memory.stat.pgminfault", attributes={"system.paging.fault.type": "minor"}
        )
        self._processes = family.updown("process.count", "{process}", "Processes in the cgroup itself")
        self._process_count = self._processes.series("cgroup.procs.count")
        self._starts = family.counter(
            "process.observed_starts",
            "{process}",
            "Processes that were seen to have come; a lower bound: those that lived between sweeps are not",
        ).series("cgroup.procs.observed_starts")
        self._exits = family.counter(
            "process.observed_exits",
            "{process}",
            "Processes that were seen to have gone; a lower bound: those that lived between sweeps are not",
        ).series("cgroup.procs.observed_exits")
        self._throttled = Owned(
            family.counter(
                "cpu.ancestor.throttled.time",
                "s",
                "Time that an ancestor's quota held its subtree back",
                "double",
            ),
            "cpu.stat.ancestor.throttled_usec",
            MICROSECONDS,
        )
        self._bounds = _bounds(family)

    def points(
        self, member: Member, monotonic_ns: int, in_force: InForce, throttled_above: Throttled
    ) -> list[Point]:
        """Every derived point of one cgroup."""
        path = member.directory.path
        points = [*self._memory(member), *self._cpu(member, monotonic_ns, in_force)]
        points += self._process_set(member)
        points += [
            (owned["self" if bound.owner == path else bound.owner], bound.amount)
            for owned, bound in zip(self._bounds, _REPORTED(in_force), strict=True)
            if bound is not None
        ]
        points += [(self._throttled[owner], usec) for owner, usec in throttled_above]
        return points

    def forget(self, path: str) -> None:
        """A cgroup has ended: what is kept for the limits that it set goes."""
        for owned in (*self._bounds, self._throttled):
            owned.pop(path, None)

    def _memory(self, member: Member) -> Iterator[Point]:
        use, current, limit = member.use, member.own.memory_current, member.own.memory_max
        if use.anon is not None:
            yield self._rss, use.anon
        if use.faults is not None and use.major_faults is not None:
            yield self._minor_faults, member.minor_faults.of(use.faults - use.major_faults)
        if current is None:
            return
        if limit:
            yield self._memory_utilization, current / limit
        if use.inactive_file is not None:
            working_set = max(0, current - use.inactive_file)
            yield self._working_set, working_set
            if limit is not None:
                yield self._available, max(0, limit - working_set)

    def _cpu(self, member: Member, monotonic_ns: int, in_force: InForce) -> Iterator[Point]:
        user, system, limit = member.use.user_usec, member.use.system_usec, in_force.cpu
        if user is None or system is None:
            member.cpu_time = None
            return
        before, member.cpu_time = member.cpu_time, (monotonic_ns, user + system)
        if before is None or monotonic_ns <= before[0] or user + system < before[1]:
            return
        cpus = (user + system - before[1]) * 1000 / (monotonic_ns - before[0])
        yield self._cpu_usage, cpus
        if limit is not None and limit.amount > 0:
            yield self._cpu_utilization, cpus / limit.amount

    def _process_set(self, member: Member) -> Iterator[Point]:
        now = member.procs.read()
        if now is None:
            return
        yield self._process_count, now.count
        if now.ids is not None:
            member.processes.update(now.ids)
            yield self._starts, member.processes.starts
            yield self._exits, member.processes.exits


def _bounds(family: Family) -> list[Owned]:
    """One metric for each of `_REPORTED`."""

    def owned(name: str, unit: str, description: str, number: Literal["int", "double"] = "int") -> Owned:
        return Owned(family.updown(name, unit, description, number), name)

    return [
        owned(
            "memory.effective_limit",
            "By",
            "Narrowest memory.max on the way from the root, or the host's memory",
        ),
        owned("memory.effective_high", "By", "Narrowest memory.high on the way from the root"),
        owned("memory.headroom", "By", "What the fullest hard limit on the way from the root leaves"),
        owned(
            "memory.high_headroom",
            "By",
            "What the fullest memory.high leaves; below 0 it throttles",
        ),
        owned("paging.effective_limit", "By", "Narrowest memory.swap.max on the way from the root"),
        owned(
            "cpu.effective_limit",
            "{cpu}",
            "Narrowest quota, cpuset or the host's CPUs",
            "double",
        ),
        owned("pid.effective_limit", "{pid}", "Narrowest pids.max on the way from the root"),
        owned("pid.headroom", "{pid}", "What the fullest pids.max on the way from the root leaves"),
    ]
