"""Which limit is in force, and who set it: pure arithmetic over a cgroup and its ancestors.

A limit holds for everything below the cgroup that sets it. So the one in force is the narrowest on
the way from the root, and what is left of it is the narrowest headroom on that way, which can be an
ancestor's although the cgroup's own limit is smaller: siblings use it too.
"""

from __future__ import annotations

from typing import NamedTuple

HOST = "host"  # the machine itself is the limit: its memory, its CPUs


class Bound(NamedTuple):
    """An amount and the path of the cgroup that sets it (`HOST`: no cgroup does)."""

    amount: float
    owner: str


class Own(NamedTuple):
    """What one cgroup's own files say: bytes, CPUs, processes; None: no limit, or not measured."""

    memory_current: float | None = None
    memory_max: float | None = None
    memory_high: float | None = None
    swap_max: float | None = None
    cpu_quota: float | None = None
    cpuset_cpus: float | None = None
    pids_current: float | None = None
    pids_max: float | None = None


class InForce(NamedTuple):
    """The narrowest limits and headrooms on the way from the root; None: there is none.

    Headroom may be negative: usage can stand above memory.high, and above a limit just lowered.
    """

    memory_max: Bound | None = None
    memory_high: Bound | None = None
    memory_headroom: Bound | None = None
    memory_high_headroom: Bound | None = None
    swap_max: Bound | None = None
    cpu_quota: Bound | None = None
    cpus: Bound | None = None
    pids_max: Bound | None = None
    pids_headroom: Bound | None = None

    @property
    def cpu(self) -> Bound | None:
        """The narrower of the quota and the CPUs that may be run on."""
        return self.cpu_quota if self.cpus is None else _narrower(self.cpus, self.cpu_quota)


def of_host(memory_total: int | None, memory_available: int | None, cpus: int | None) -> InForce:
    """What the machine itself allows, before any cgroup narrows it."""
    return InForce(
        memory_max=_bound(memory_total, HOST),
        memory_headroom=_bound(memory_available, HOST),
        cpus=_bound(cpus, HOST),
    )


def narrowed(above: InForce, own: Own, path: str) -> InForce:
    """What is in force for the cgroup at ``path`` below ``above``.

    Of two equal limits the inner one counts: the kernel charges from the leaf upwards and fails
    at the first that is full (mm/page_counter.c, page_counter_try_charge).
    """
    return InForce(
        _narrower(above.memory_max, _bound(own.memory_max, path)),
        _narrower(above.memory_high, _bound(own.memory_high, path)),
        _narrower(above.memory_headroom, _left(own.memory_max, own.memory_current, path)),
        _narrower(above.memory_high_headroom, _left(own.memory_high, own.memory_current, path)),
        _narrower(above.swap_max, _bound(own.swap_max, path)),
        _narrower(above.cpu_quota, _bound(own.cpu_quota, path)),
        _effective(above.cpus, own.cpuset_cpus, path),
        _narrower(above.pids_max, _bound(own.pids_max, path)),
        _narrower(above.pids_headroom, _left(own.pids_max, own.pids_current, path)),
    )


def _narrower(above: Bound | None, own: Bound | None) -> Bound | None:
    if own is None or (above is not None and above.amount < own.amount):
        return above
    return own


def _effective(above: Bound | None, cpus: float | None, path: str) -> Bound | None:
    """The CPUs of cpuset.cpus.effective, which is not narrowed any more: the kernel has done that.

    It may name more than the parent's, which has handed them to this cgroup's partition. Where it
    names as many, they are the parent's own.
    """
    if cpus is None or (above is not None and above.amount == cpus):
        return above
    return Bound(cpus, path)


def _bound(amount: float | None, path: str) -> Bound | None:
    return None if amount is None else Bound(amount, path)


def _left(limit: float | None, usage: float | None, path: str) -> Bound | None:
    return None if limit is None or usage is None else Bound(limit - usage, path)
