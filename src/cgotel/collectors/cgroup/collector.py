"""The cgroup collector: one pass over the tree, parents first, so that limits narrow on the way."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Annotated, NamedTuple

import msgspec

from cgotel.collectors.cgroup import cpu, io, memory, others, pressure
from cgotel.collectors.cgroup.derived import Derived, Throttled
from cgotel.collectors.cgroup.limits import InForce, narrowed, of_host
from cgotel.collectors.cgroup.member import Member, Tables
from cgotel.collectors.cgroup.oom import oom_kills
from cgotel.collectors.cgroup.selection import Selection, compile_globs
from cgotel.collectors.cgroup.status import statuses
from cgotel.collectors.cgroup.tables import Family
from cgotel.contract import Collector, CollectorSettings, SourceStatus, State, Tick, Unavailable
from cgotel.identity import KINDS, identify
from cgotel.identity.cgroups import cgroup_entity
from cgotel.kernel import topology
from cgotel.kernel.cgroupfs import CgroupDirectory, CgroupTree
from cgotel.kernel.files import Descriptors
from cgotel.kernel.roots import Roots
from cgotel.kernel.source import state_of
from cgotel.model import Event, Reading, Series

LIMIT_FILES = frozenset(
    (
        "cpu.max",
        "cpu.stat",
        "cpuset.cpus.effective",
        "memory.current",
        "memory.high",
        "memory.max",
        "memory.swap.max",
        "pids.current",
        "pids.max",
    )
)
"""What is read of a cgroup that is not reported, for the sake of those below it."""

_MOST_CGROUPS = 65536  # of a large host; each keeps a descriptor of its directory
_FAMILY_OF_KIND = {"container": "container", "pod": "k8s.pod"}


class CgroupConfig(CollectorSettings, frozen=True):
    """``[collectors.cgroup]``: which cgroups, and what of them."""

    include: tuple[str, ...] = ()
    """Path globs from the cgroup root; empty: every cgroup."""
    exclude: tuple[str, ...] = ()
    """Path globs that hide a cgroup and everything below it."""
    kinds: tuple[str, ...] = ()
    """Kinds of cgroup to report (container, pod, service, ...); empty: all."""
    max_depth: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """How deep below the root to look; the root is 0."""
    pressure_averages: bool = False
    """Also the kernel's running averages, which can be derived from the totals."""
    slow_interval: Annotated[float, msgspec.Meta(gt=0, le=86400)] = 60.0
    """Seconds between reads of costly files: the root's memory.stat, memory.numa_stat."""
    keep_open_files: Annotated[int, msgspec.Meta(ge=0)] = 8192
    """Descriptors kept between sweeps; each costs the kernel about 5 KiB, none costs time."""

    def __post_init__(self) -> None:
        compile_globs(self.include)
        compile_globs(self.exclude)
        for kind in self.kinds:
            if kind not in KINDS:
                raise ValueError(f"no kind {kind!r}; allowed: {', '.join(sorted(KINDS))}")


class _Plan:
    """What is read and derived for the cgroups of one kind."""

    def __init__(self, kind: str, config: CgroupConfig, roots: Roots) -> None:
        family = Family(_FAMILY_OF_KIND.get(kind, "cgroup"))
        device_name = cache(lambda device: topology.block_device_name(roots.sys, device))
        tables = [
            *cpu.tables(family),
            *memory.tables(family),
            *pressure.tables(family, config.pressure_averages, machine=kind == "root"),
            *io.tables(family, device_name),
            *others.tables(family, topology.huge_page_sizes(roots.sys)),
        ]
        self.tables = Tables(tables)
        self.limit_tables = Tables([table for table in tables if table.file in LIMIT_FILES])
        self.derived = Derived(family)
        self.instruments = tuple(family.instruments.values())


class _Above(NamedTuple):
    """What a cgroup inherits from its ancestors."""

    in_force: InForce
    throttled: Throttled


class CgroupCollector(Collector):
    """Limits, use, events and pressure of every cgroup, and whose limit is in force for it."""

    name = "cgroup"
    Config = CgroupConfig
    needs = ("a cgroup v2 mount, readable as any user",)

    config: CgroupConfig

    def __init__(self, config: CgroupConfig, roots: Roots) -> None:
        super().__init__(config, roots)
        self._selection = Selection(config.include, config.exclude, config.kinds, config.max_depth)
        self._plans = {kind: _Plan(kind, config, roots) for kind in ("cgroup", "root", *_FAMILY_OF_KIND)}
        self.instruments = tuple(
            {i.name: i for plan in self._plans.values() for i in plan.instruments}.values()
        )
        self._members: dict[CgroupDirectory, Member] = {}
        self._interned: dict[tuple[Series, ...], tuple[Series, ...]] = {}
        self._tree: CgroupTree | None = None
        self._descriptors = Descriptors(0)
        self._slow_due_ns = 0
        self._events: list[Event] = []

    def start(self) -> None:
        mount = self.roots.cgroup
        if mount is None:
            raise Unavailable(
                SourceStatus(
                    self.name,
                    State.ABSENT,
                    "no cgroup v2 hierarchy is mounted",
                    "boot with systemd.unified_cgroup_hierarchy=1, or set HOST_CGROUP to its mount",
                )
            )
        self._slow_due_ns = 0
        try:
            directories = Descriptors.raised(self.config.keep_open_files + _MOST_CGROUPS)
            self._descriptors = directories.part(self.config.keep_open_files)
            self._tree = CgroupTree(mount, self._selection.enters, directories)
        except OSError as error:
            status = SourceStatus(self.name, state_of(error), f"{mount}: {error.strerror}")
            raise Unavailable(status) from error

    def collect(self, tick: Tick) -> Iterator[Reading]:
        assert self._tree is not None, "collect() before start()"
        slow = tick.monotonic_ns >= self._slow_due_ns
        if slow:
            self._slow_due_ns = tick.monotonic_ns + int(self.config.slow_interval * 1e9)
        self._forget(self._tree.update())
        if slow:
            for member in self._members.values():
                member.retry()
        self._events = []
        pending = [(self._tree.root, _Above(self._of_host(), ()))]
        while pending:
            directory, above = pending.pop()
            member = self._members.get(directory) or self._admit(directory)
            reading, below = self._visit(member, above, tick, slow)
            if reading is not None:
                yield reading
            pending += [(child, below) for child in directory.children.values()]

    def _visit(self, member: Member, above: _Above, tick: Tick, slow: bool) -> tuple[Reading | None, _Above]:
        """Read one cgroup; return its reading, if it is reported, and what its children inherit."""
        path = member.directory.path
        values = member.read(slow)
        in_force = narrowed(above.in_force, member.own, path)
        if (killed := oom_kills(member, tick.time_ns)) is not None:
            self._events.append(killed)
        reading = None
        if member.reported and values and not member.gone:
            derived = self._plan(member.entity.kind).derived
            points = derived.points(member, tick.monotonic_ns, in_force, above.throttled)
            series = self._kept(member, tuple([series for series, _ in points]))
            values += [value for _, value in points]
            reading = Reading(member.entity, tick.time_ns, series, values)
        throttled = above.throttled
        if member.own.cpu_quota is not None and member.use.throttled_usec is not None:
            throttled = (*throttled, (path, member.use.throttled_usec))
        return reading, _Above(in_force, throttled)

    def _kept(self, member: Member, derived: tuple[Series, ...]) -> tuple[Series, ...]:
        """The series of a reading: the very tuple of the sweep before, or of a like cgroup."""
        parts = (member.series, derived)
        if parts != member.reading_parts:
            member.reading_parts = parts
            series = member.series + derived
            if len(self._interned) > 2 * len(self._members) + 64:
                self._interned.clear()
            member.reading_series = self._interned.setdefault(series, series)
        return member.reading_series

    def _forget(self, gone: list[CgroupDirectory]) -> None:
        for directory in gone:
            if (member := self._members.pop(directory, None)) is not None:
                member.close()
            for plan in self._plans.values():
                plan.derived.forget(directory.path)

    def _admit(self, directory: CgroupDirectory) -> Member:
        identity = identify(directory.path)
        plan = self._plan(identity.kind)
        reported = self._selection.reports(directory.path, identity.kind)
        began_ns = directory.made_ns
        if directory.is_machine:
            began_ns = topology.boot_time_ns(self.roots.proc) or began_ns
        entity = cgroup_entity(directory.path, directory.id, began_ns)
        tables = plan.tables if reported else plan.limit_tables
        member = Member(directory, entity, reported, tables, self._descriptors)
        self._members[directory] = member
        return member

    def _plan(self, kind: str) -> _Plan:
        return self._plans.get(kind) or self._plans["cgroup"]

    def _of_host(self) -> InForce:
        memory_of_host = topology.memory(self.roots.proc)
        return of_host(
            memory_of_host.get("MemTotal"),
            memory_of_host.get("MemAvailable"),
            topology.online_cpus(self.roots.sys),
        )

    def events(self) -> list[Event]:
        return self._events

    def sources(self) -> Iterator[SourceStatus]:
        if self._tree is not None:
            yield from statuses(self._members.values(), self._tree.unopened, self.roots)

    def close(self) -> None:
        for member in self._members.values():
            member.close()
        self._members.clear()
        if self._tree is not None:
            self._tree.close()
            self._tree = None
