"""Which limit is in force, and whose: never wider than any ancestor's, and the owner is the truth."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cgotel.collectors.cgroup.limits import HOST, Bound, InForce, Own, narrowed, of_host

amounts = st.none() | st.integers(0, 5) | st.integers(0, 2**63 - 1)
cgroups = st.builds(
    Own,
    memory_current=amounts,
    memory_max=amounts,
    memory_high=amounts,
    swap_max=amounts,
    cpu_quota=amounts | st.floats(0.001, 8.0),
    cpuset_cpus=st.none() | st.integers(0, 8),
    pids_current=amounts,
    pids_max=amounts,
)
hosts = st.builds(of_host, amounts, amounts, st.none() | st.integers(1, 8))
ways = st.lists(cgroups, min_size=1, max_size=6)

LIMITS = {
    "memory_max": lambda own: own.memory_max,
    "memory_high": lambda own: own.memory_high,
    "swap_max": lambda own: own.swap_max,
    "cpu_quota": lambda own: own.cpu_quota,
    "pids_max": lambda own: own.pids_max,
    "memory_headroom": lambda own: _left(own.memory_max, own.memory_current),
    "memory_high_headroom": lambda own: _left(own.memory_high, own.memory_current),
    "pids_headroom": lambda own: _left(own.pids_max, own.pids_current),
}


@given(hosts, ways)
def test_every_bound_is_the_narrowest_on_the_way_and_the_innermost_of_equals(
    host: InForce, way: list[Own]
) -> None:
    in_force = walk(host, way)
    for field, of in LIMITS.items():
        candidates = [
            Bound(amount, f"/{depth}") for depth, own in enumerate(way) if (amount := of(own)) is not None
        ]
        candidates = [bound for bound in [getattr(host, field)] if bound is not None] + candidates
        narrowest = min((bound.amount for bound in candidates), default=None)
        equals = [bound for bound in candidates if bound.amount == narrowest]
        assert getattr(in_force, field) == (equals[-1] if equals else None), field


@given(hosts, ways, cgroups)
def test_a_child_never_has_more_than_its_parent(host: InForce, way: list[Own], child: Own) -> None:
    above = walk(host, way)
    below = narrowed(above, child, "/child")
    for field in LIMITS:
        outer, inner = getattr(above, field), getattr(below, field)
        assert outer is None or inner.amount <= outer.amount, field
        assert inner is None or inner == outer or inner.owner == "/child", field


@given(hosts, ways)
def test_whose_limit_it_is_can_be_looked_up_there(host: InForce, way: list[Own]) -> None:
    in_force = walk(host, way)
    for field, of in LIMITS.items():
        bound = getattr(in_force, field)
        if bound is not None and bound.owner != HOST:
            assert of(way[int(bound.owner[1:])]) == bound.amount, field
    if in_force.cpus is not None and in_force.cpus.owner != HOST:
        assert way[int(in_force.cpus.owner[1:])].cpuset_cpus == in_force.cpus.amount


@given(hosts, ways)
def test_the_cpus_are_those_that_the_kernel_says_are_effective(host: InForce, way: list[Own]) -> None:
    """The nearest cpuset.cpus.effective holds: the kernel has narrowed it already."""
    said = [own.cpuset_cpus for own in way if own.cpuset_cpus is not None]
    host_cpus = None if host.cpus is None else host.cpus.amount
    cpus = walk(host, way).cpus
    assert (None if cpus is None else cpus.amount) == (said[-1] if said else host_cpus)


@given(hosts, ways)
def test_the_cpu_limit_is_the_narrower_of_quota_and_cpus(host: InForce, way: list[Own]) -> None:
    in_force = walk(host, way)
    both = [bound for bound in (in_force.cpu_quota, in_force.cpus) if bound is not None]
    assert (in_force.cpu is None) == (not both)
    if in_force.cpu is not None:
        assert in_force.cpu in both
        assert in_force.cpu.amount == min(bound.amount for bound in both)


def test_an_ancestors_headroom_may_be_narrower_than_the_own_limits() -> None:
    in_force = walk(
        of_host(1000, 900, 8),
        [Own(memory_current=480, memory_max=500), Own(memory_current=10, memory_max=100)],
    )
    assert in_force.memory_max == Bound(100, "/1")
    assert in_force.memory_headroom == Bound(20, "/0")


def test_usage_above_a_limit_is_a_headroom_below_zero() -> None:
    in_force = walk(
        InForce(), [Own(memory_current=130, memory_max=200, memory_high=100, pids_current=9, pids_max=8)]
    )
    assert in_force.memory_high_headroom == Bound(-30, "/0")
    assert in_force.pids_headroom == Bound(-1, "/0")


def test_a_limit_without_its_use_has_no_headroom_and_use_without_a_limit_neither() -> None:
    in_force = walk(InForce(), [Own(memory_max=5, pids_current=3)])
    assert in_force.memory_max == Bound(5, "/0")
    assert in_force.memory_headroom is in_force.pids_headroom is in_force.pids_max is None


def test_without_any_limit_the_machine_is_the_limit_and_without_a_machine_there_is_none() -> None:
    machine = walk(of_host(1000, 400, 8), [Own(memory_current=5), Own()])
    assert machine == InForce(
        memory_max=Bound(1000, HOST), memory_headroom=Bound(400, HOST), cpus=Bound(8, HOST)
    )
    assert walk(of_host(None, None, None), [Own(), Own()]) == InForce()


@pytest.mark.parametrize(
    ("cpus", "bound"),
    [
        ([8, 8, 8], Bound(8, HOST)),  # inherited all the way
        ([8, 4, 4], Bound(4, "/1")),  # set once, inherited below
        ([2, 6], Bound(6, "/1")),  # a partition, whose CPUs were taken from the root
        ([0, 4], Bound(4, "/1")),  # a partition that took them all
        ([8, None, 2], Bound(2, "/2")),
        ([None, None], Bound(8, HOST)),
    ],
)
def test_whoever_gave_the_cpus_owns_the_limit(cpus: list[int | None], bound: Bound) -> None:
    assert walk(of_host(None, None, 8), [Own(cpuset_cpus=count) for count in cpus]).cpu == bound


def walk(host: InForce, way: Sequence[Own]) -> InForce:
    in_force = host
    for depth, own in enumerate(way):
        in_force = narrowed(in_force, own, f"/{depth}")
    return in_force


def _left(limit: int | None, use: int | None) -> int | None:
    return None if limit is None or use is None else limit - use
