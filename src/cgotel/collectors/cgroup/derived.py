"""What no single file says: working set, rates, the limits in force, processes that came and went."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter
from typing import Literal

from cgotel.collectors.cgroup.limits import HOST, Bound, InForce, Own
from cgotel.collectors.cgroup.member import Member
from cgotel.collectors.cgroup.tables import Family
from cgotel.collectors.tables import MICROSECONDS, NOTHING
from cgotel.kernel.formats import Columns
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
_PLACES = 256

Throttled = tuple[tuple[str, Number], ...]
"""Paths of ancestors that have a CPU quota, each with its throttled_usec."""


class Owned:
    """A metric with the cgroup behind the limit as attribute: `self`, `host` or an ancestor's path."""

    def __init__(self, instrument: Instrument, source: str, divisor: int = 1) -> None:
        self._instrument = instrument
        self._source = source
        self._divisor = divisor
        self._series: dict[str, Series] = {}

    def by(self, owner: str) -> Series:
        """The series whose limit this owner sets."""
        if owner not in self._series:
            text = owner.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
            self._series[owner] = self._instrument.series(self._source, self._divisor, {_OWNER: text})
        return self._series[owner]

    def forget(self, owner: str) -> None:
        """The owner has ended and sets no limit any more."""
        self._series.pop(owner, None)


class Picker:
    """Finds some sources among a file's columns, remembering where they stand."""

    def __init__(self, *sources: str) -> None:
        self._sources = sources
        self._places: dict[int, tuple[tuple[Series, ...], tuple[int | None, ...]]] = {}

    def __call__(self, columns: Columns[Series]) -> list[Number | None]:
        """The numbers of the sources in their order, None for what is not there."""
        wanted, values = columns
        known = self._places.get(id(wanted))  # which is kept, and so is the only one of this id
        if known is None:
            names = [series.source for series in wanted]
            places = tuple([names.index(s) if s in names else None for s in self._sources])
            if len(self._places) >= _PLACES:
                self._places.clear()
            self._places[id(wanted)] = known = (wanted, places)
        return [None if place is None else values[place] for place in known[1]]


class Derived:
    """The derived metrics of one family of cgroups."""

    def __init__(self, family: Family) -> None:
        self._cpu_picker = Picker("cpu.stat.user_usec", "cpu.stat.system_usec", "cpu.stat.throttled_usec")
        self._memory_picker = Picker(
            "memory.stat.inactive_file", "memory.stat.anon", "memory.stat.pgfault", "memory.stat.pgmajfault"
        )
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
            "Processes that appeared between sweeps; a lower bound: those that also ended are not seen",
        ).series("cgroup.procs.observed_starts")
        self._exits = family.counter(
            "process.observed_exits",
            "{process}",
            "Processes that vanished between sweeps; a lower bound: those that began after one are not seen",
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
        self,
        member: Member,
        monotonic_ns: int,
        own: Own,
        in_force: InForce,
        throttled_above: Throttled,
    ) -> Iterator[Point]:
        """Every derived point of one cgroup."""
        yield from self._memory(member, own)
        yield from self._cpu(member, monotonic_ns, in_force)
        yield from self._process_set(member)
        path = member.directory.path
        for owned, bound in zip(self._bounds, _REPORTED(in_force), strict=True):
            if bound is not None:
                yield owned.by(_relation(bound, path)), bound.amount
        for owner, throttled_usec in throttled_above:
            yield self._throttled.by(owner), throttled_usec

    def forget(self, path: str) -> None:
        """A cgroup has ended: what is kept for the limits that it set goes."""
        for owned in (*self._bounds, self._throttled):
            owned.forget(path)

    def throttled(self, member: Member) -> Number | None:
        """throttled_usec of a cgroup that has a quota of its own."""
        if member.own_quota is None:
            return None
        return self._cpu_picker(member.files["cpu.stat"].last)[2]

    def _memory(self, member: Member, own: Own) -> Iterator[Point]:
        stat = member.files.get("memory.stat")
        inactive_file, anon, faults, major = self._memory_picker(NOTHING if stat is None else stat.last)
        if anon is not None:
            yield self._rss, anon
        if faults is not None and major is not None:
            yield self._minor_faults, member.minor_faults.of(faults - major)
        current = own.memory_current
        if current is None:
            return
        if own.memory_max:
            yield self._memory_utilization, current / own.memory_max
        if inactive_file is not None:
            working_set = max(0, current - int(inactive_file))
            yield self._working_set, working_set
            if own.memory_max is not None:
                yield self._available, max(0, own.memory_max - working_set)

    def _cpu(self, member: Member, monotonic_ns: int, in_force: InForce) -> Iterator[Point]:
        user, system, _ = self._cpu_picker(member.files["cpu.stat"].last)
        if user is None or system is None:
            member.cpu_time = None
            return
        before, member.cpu_time = member.cpu_time, (monotonic_ns, user + system)
        if before is None or monotonic_ns <= before[0] or user + system < before[1]:
            return
        cpus = (user + system - before[1]) * 1000 / (monotonic_ns - before[0])
        yield self._cpu_usage, cpus
        if in_force.cpu is not None and in_force.cpu.amount > 0:
            yield self._cpu_utilization, cpus / in_force.cpu.amount

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


def _relation(bound: Bound, path: str) -> str:
    return "self" if bound.owner == path and bound.owner != HOST else bound.owner
