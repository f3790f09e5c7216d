"""What holds workloads back, out of one sweep and the one before it: pure, for people to read.

Shares are of the time between the two sweeps. Of a single sweep nothing can be said about a share,
so it gives totals since each cgroup began, in seconds (`Summary.interval_s` is None).

Cgroups without processes of their own are not listed: they act through those below them, where
`Row.throttled` and the bounds name them. What was not measured is None.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from cgotel.model import Sweep
from cgotel.outputs.measured import Measured, by_entity
from cgotel.outputs.names import name_of, path_of

SELF = "self"
HOST = "host"
WORKLOAD = "workload"
ROOT = "/"

RESOURCES = ("cpu", "memory", "io")
HOST_RESOURCES = (*RESOURCES, "irq")

_ANCESTORS_THROTTLED = "cpu.stat.ancestor.throttled_usec"
_PIDS_NEAR = 5  # a fifth of the limit is left


class Stall(NamedTuple):
    """Time that at least one task (``some``) or all of them (``full``) waited for a resource."""

    some: float | None = None
    full: float | None = None


class Bound(NamedTuple):
    """An amount and who sets it: ``self``, ``host`` or the path of an ancestor.

    ``high`` tells memory.high, which throttles, from memory.max, which kills.
    """

    amount: float
    owner: str
    high: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """One cgroup: what it uses, what it waits for, which limits are in force. Bytes and CPUs.

    ``pids_left``, in processes and threads, is told only where it is little.
    """

    name: str
    kind: str
    path: str
    cpu: float | None = None
    cpu_limit: Bound | None = None
    throttled: Bound | None = None
    stalled: Mapping[str, Stall] = field(default_factory=dict)
    memory: float | None = None
    memory_limit: Bound | None = None
    memory_left: Bound | None = None
    pids_left: Bound | None = None

    @property
    def held_back(self) -> float:
        """The largest of its stalls and its throttling; -1 where none was measured."""
        found = [stall.some for stall in self.stalled.values()]
        found.append(None if self.throttled is None else self.throttled.amount)
        return max((amount for amount in found if amount is not None), default=-1.0)


@dataclass(frozen=True, slots=True)
class Host:
    """The machine itself."""

    stalled: Mapping[str, Stall] = field(default_factory=dict)
    memory_available: float | None = None
    memory_total: float | None = None


@dataclass(frozen=True, slots=True)
class Summary:
    """One frame. ``rows`` begin with what is held back most; ``names`` are those of all paths read."""

    time_ns: int
    interval_s: float | None
    host: Host
    rows: list[Row]
    names: Mapping[str, str]


def summarize(sweep: Sweep, before: Sweep | None = None, only: Container[str] | None = None) -> Summary:
    """The summary of a sweep; with the sweep before it, of the time between the two.

    ``only`` names the paths of cgroups to list, whether there are processes in them or not.
    """
    interval_s = None if before is None else (sweep.time_ns - before.time_ns) / 1e9
    if interval_s is not None and interval_s <= 0:  # the clock was set back
        interval_s, before = None, None
    known = by_entity(before.readings if before else ())
    host = None
    cgroups: dict[str, Measured] = {}
    for key, readings in by_entity(sweep.readings).items():
        measured = Measured(readings, known.get(key, []), interval_s)
        path = path_of(measured.entity)
        if measured.entity.kind == WORKLOAD:
            continue  # its ends are counted, and no cgroup is read
        if path is not None:
            cgroups[path] = measured
        elif measured.entity.kind == HOST:
            host = measured
    names = {path: name_of(measured.entity, path) for path, measured in cgroups.items()}
    listed = _with_processes(cgroups) if only is None else [path for path in cgroups if path in only]
    rows = sorted((_row(path, names, cgroups) for path in listed), key=_rank)
    return Summary(sweep.time_ns, interval_s, _host(host, cgroups.get(ROOT)), rows, names)


def _with_processes(cgroups: Mapping[str, Measured]) -> list[str]:
    """Paths of the cgroups that hold processes; the root, which is the host, where there is no other."""
    found = [path for path, measured in cgroups.items() if measured.number("cgroup.procs.count") != 0]
    return [path for path in found if path != ROOT] or found


def _rank(row: Row) -> tuple[float, float, float, str]:
    """Most held back first; in whole percent, so that rows do not dance."""
    return (-round(row.held_back, 2), -round(row.cpu or 0, 1), -(row.memory or 0), row.path)


def _row(path: str, names: Mapping[str, str], cgroups: Mapping[str, Measured]) -> Row:
    measured = cgroups[path]
    return Row(
        name=names[path],
        kind=measured.entity.kind,
        path=path,
        cpu=_cpu(measured),
        cpu_limit=_bound(measured, "cpu.effective_limit"),
        throttled=_throttled(measured, cgroups),
        stalled={resource: _stall(measured, f"{resource}.pressure") for resource in RESOURCES},
        memory=measured.number("memory.current"),
        memory_limit=_narrower(
            _bound(measured, "memory.effective_limit"),
            _bound(measured, "memory.effective_high", high=True),
        ),
        memory_left=_narrower(
            _bound(measured, "memory.headroom"),
            _bound(measured, "memory.high_headroom", high=True),
        ),
        pids_left=_pids_left(measured),
    )


def _cpu(measured: Measured) -> float | None:
    """CPUs in use; seconds of CPU time where there is no interval."""
    if measured.interval_s is not None:
        return measured.number("cpu.usage")
    user, system = measured.time("cpu.stat.user_usec"), measured.time("cpu.stat.system_usec")
    return None if user is None or system is None else user + system


def _throttled(measured: Measured, cgroups: Mapping[str, Measured]) -> Bound | None:
    """The quota that held it back most: its own, or an ancestor's."""
    shares = {SELF: _throttling(measured)}
    for owner in measured.owned(_ANCESTORS_THROTTLED):
        above = cgroups.get(owner)
        share = None if above is None else _throttling(above)
        shares[owner] = measured.time(_ANCESTORS_THROTTLED, owner) if share is None else share
    found = [Bound(share, owner) for owner, share in shares.items() if share is not None]
    return max(found, key=lambda bound: bound.amount, default=None)


def _throttling(measured: Measured) -> float | None:
    """The share of a quota's periods that ran out; seconds where there is no interval.

    throttled_usec adds up over CPUs and so may exceed the time that passed; periods cannot.
    """
    if measured.interval_s is None:
        return measured.time("cpu.stat.throttled_usec")
    periods, ran_out = measured.change("cpu.stat.nr_periods"), measured.change("cpu.stat.nr_throttled")
    if periods is None or ran_out is None:
        return None
    return min(1.0, ran_out / periods) if periods else 0.0


def _stall(measured: Measured, file: str) -> Stall:
    return Stall(measured.time(f"{file}.some.total"), measured.time(f"{file}.full.total"))


def _bound(measured: Measured, source: str, high: bool = False) -> Bound | None:
    owned = measured.owned(source).items()
    return next((Bound(amount, owner, high) for owner, amount in owned), None)


def _narrower(one: Bound | None, other: Bound | None) -> Bound | None:
    found = [bound for bound in (one, other) if bound is not None]
    return min(found, key=lambda bound: bound.amount, default=None)


def _pids_left(measured: Measured) -> Bound | None:
    limit, pids_left = _bound(measured, "pid.effective_limit"), _bound(measured, "pid.headroom")
    if limit is None or pids_left is None or pids_left.amount * _PIDS_NEAR > limit.amount:
        return None
    return pids_left


def _host(host: Measured | None, root: Measured | None) -> Host:
    """From the host's own reading; what is missing there, the root cgroup says as well."""
    stalls: dict[str, Stall] = {}
    for resource in HOST_RESOURCES:
        stall = _stall(host, f"pressure.{resource}") if host else Stall()
        if stall == Stall() and root:
            stall = _stall(root, f"{resource}.pressure")
        stalls[resource] = Stall(stall.some) if resource == "cpu" else stall  # "full" is not defined
    available = host.number("meminfo.MemAvailable") if host else None
    total = host.number("meminfo.MemTotal") if host else None
    if root and available is None:
        available = root.number("memory.headroom", HOST)
    if root and total is None:
        total = root.number("memory.effective_limit", HOST)
    return Host(stalls, available, total)
