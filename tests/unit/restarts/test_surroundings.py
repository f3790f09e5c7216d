"""What is kept of sweeps, for how long, and what is found of it around an exit."""

from __future__ import annotations

from pathlib import Path

import pytest

from cgotel.collectors.cgroup import CgroupCollector, CgroupConfig
from cgotel.collectors.host import HostCollector
from cgotel.collectors.pressure import PressureCollector
from cgotel.contract import Tick
from cgotel.evidence import HostMemory, MemoryUse
from cgotel.kernel.roots import Roots
from cgotel.model import Entity, Instrument, Number, Reading, Series, Sweep
from cgotel.restarts.surroundings import Surroundings
from cgotel.testing import sweep as swept
from cgotel.testing import tree

SECOND = 10**9
NOW = 1_700_000_000 * SECOND
MIB = 1 << 20
ANY = Instrument("any", "gauge", "1", "")


def series(source: str, **attributes: str) -> Series:
    return ANY.series(source, attributes={key.replace("_", "."): value for key, value in attributes.items()})


def reading(path: str, time_ns: int, key: str = "", **sources: Number) -> Reading:
    entity = Entity("cgroup", key or f"{path}@1", {"process.linux.cgroup": f"0::{path}"})
    points = [(series(source.replace("__", ".")), value) for source, value in sources.items()]
    return Reading.of(entity, time_ns, points)


def of_host(time_ns: int, **sources: Number) -> Reading:
    points = [(series(source.replace("__", ".")), value) for source, value in sources.items()]
    return Reading.of(Entity("host", "h"), time_ns, points)


def see(surroundings: Surroundings, *readings: Reading) -> None:
    surroundings.see(Sweep(readings[0].time_ns, list(readings)))


def test_a_cgroup_its_ancestors_and_the_host_are_found_around_an_exit() -> None:
    surroundings = Surroundings()
    see(
        surroundings,
        reading("/a", NOW, memory__current=3),
        reading("/a/b", NOW, memory__current=2),
        reading("/a/bc", NOW, memory__current=1),
        of_host(NOW, meminfo__MemTotal=8, meminfo__MemAvailable=7),
    )
    host, own, above = surroundings.around("/a/b", NOW + SECOND)
    assert host == HostMemory(source="sweep", time_ns=NOW, total=8, available=7)
    assert own == MemoryUse(source="sweep", time_ns=NOW, cgroup="/a/b", current=2)
    assert above.cgroup == "/a"
    assert surroundings.around(None, NOW) == [host]


def test_limits_are_the_own_ones_and_the_effective_one_has_its_owner() -> None:
    surroundings = Surroundings()
    for owner, expected in (("self", "/a"), ("/", "/"), ("host", None)):
        points = [
            (series("memory.current"), 5),
            (series("memory.peak"), 9),
            (series("memory.max"), 64 * MIB),
            (series("memory.swap.max"), 0),
            (series("memory.effective_limit", cgroup_limit_owner=owner), 32 * MIB),
        ]
        entity = Entity("cgroup", "/a@1", {"process.linux.cgroup": "0::/a"})
        surroundings = Surroundings()
        see(surroundings, Reading.of(entity, NOW, points))
        [use] = surroundings.around("/a", NOW)
        assert use.limits == {"memory.max": 64 * MIB, "memory.swap.max": 0}
        assert (use.peak, use.effective_limit, use.limit_cgroup) == (9, 32 * MIB, expected)


def test_pressure_is_a_share_of_the_time_between_two_sweeps() -> None:
    surroundings = Surroundings()
    for second, some, full in ((0, 1_000_000, 0), (10, 6_000_000, 1_000_000)):
        see(
            surroundings,
            reading(
                "/a",
                NOW + second * SECOND,
                memory__current=1,
                memory__pressure__some__total=some,
                memory__pressure__full__total=full,
            ),
            of_host(NOW + second * SECOND, pressure__memory__full__total=2 * full),
        )
    first_host, host, first, use = surroundings.around("/a", NOW + 10 * SECOND)
    assert (first.some_avg10, first.full_avg10, first_host.full_avg10) == (None, None, None)
    assert (use.some_avg10, use.full_avg10, host.full_avg10) == (0.5, 0.1, 0.2)


def test_the_kernels_own_average_goes_before_one_of_ours() -> None:
    surroundings = Surroundings()
    see(surroundings, reading("/a", NOW, memory__current=1, memory__pressure__full__avg10=12.5))
    [use] = surroundings.around("/a", NOW)
    assert (use.some_avg10, use.full_avg10) == (None, 0.125)


def test_a_namesake_does_not_go_on_with_the_pressure_of_the_one_before() -> None:
    surroundings = Surroundings()
    for second, key, total in ((0, "/a@1", 10), (10, "/a@2", 5_000_000)):
        sources = {"memory__current": 1, "memory__pressure__full__total": total}
        see(surroundings, reading("/a", NOW + second * SECOND, key, **sources))
    assert surroundings.around("/a", NOW + 10 * SECOND)[-1].full_avg10 is None


def test_what_was_not_measured_is_not_there() -> None:
    surroundings = Surroundings()
    see(surroundings, reading("/a", NOW, cpu__stat__usage_usec=1), of_host(NOW, loadavg=1))
    assert surroundings.around("/a", NOW) == []


def test_swap_of_all_devices_is_one_amount() -> None:
    surroundings = Surroundings()
    swaps = [
        ("swaps./dev/zram0.used", 5),
        ("swaps./dev/zram0.free", 10),
        ("swaps./swap.used", 1),
        ("swaps./swap.free", 2),
    ]
    host = Reading.of(Entity("host", "h"), NOW, [(series(source), value) for source, value in swaps])
    surroundings.see(Sweep(NOW, [host]))
    [memory] = surroundings.around(None, NOW)
    assert (memory.swap_total, memory.swap_free, memory.total) == (18, 12, None)


@pytest.mark.parametrize("interval_s", [1, 10, 60])
def test_rings_are_short_at_any_interval_and_the_newest_is_always_there(interval_s: int) -> None:
    surroundings = Surroundings()
    for second in range(0, 3600, interval_s):
        see(surroundings, reading("/a", NOW + second * SECOND, memory__current=second))
        newest = surroundings.around("/a", NOW + second * SECOND)[-1]
        assert newest.current == second
    kept = surroundings.around("/a", newest.time_ns)
    assert len(kept) <= 20
    assert 180 <= (newest.time_ns - kept[0].time_ns) / SECOND <= 300
    assert [use.time_ns for use in kept] == sorted(use.time_ns for use in kept)


def test_one_that_ended_is_kept_for_ten_minutes() -> None:
    surroundings = Surroundings()
    see(surroundings, reading("/gone", NOW, memory__current=1))
    for second in range(10, 700, 10):
        see(surroundings, reading("/a", NOW + second * SECOND, memory__current=1))
        assert bool(surroundings.around("/gone", NOW)) == (second <= 600)


def test_too_many_cgroups_do_not_grow_memory_without_end() -> None:
    surroundings = Surroundings()
    readings = [reading(f"/n{n}", NOW, memory__current=1) for n in range(20_500)]
    see(surroundings, *readings)
    assert surroundings.around("/n0", NOW) == []
    assert surroundings.around("/n20499", NOW) != []


def test_a_clock_of_its_own_is_led_to_the_others() -> None:
    surroundings = Surroundings()
    surroundings.see(Sweep(NOW + 3600 * SECOND, [reading("/a", 0, memory__current=1)]), 3600 * SECOND)
    [use] = surroundings.around("/a", NOW)
    assert use.time_ns == NOW


def test_what_the_collectors_read_is_what_is_found(tmp_path: Path) -> None:
    pressure = (
        "some avg10=0.00 avg60=0.00 avg300=0.00 total={}\nfull avg10=0.00 avg60=0.00 avg300=0.00 total={}\n"
    )
    mount = tree(
        {
            "web": {
                "memory.max": f"{64 * MIB}\n",
                "cpu.stat": "usage_usec 1\nuser_usec 1\nsystem_usec 0\n",
                "app": {
                    "memory.current": f"{60 * MIB}\n",
                    "memory.peak": f"{61 * MIB}\n",
                    "memory.max": "max\n",
                    "memory.high": f"{63 * MIB}\n",
                    "memory.pressure": pressure.format(7, 3),
                    "cpu.stat": "usage_usec 1\nuser_usec 1\nsystem_usec 0\n",
                },
            }
        },
        into=tmp_path,
    )
    roots = Roots(cgroup=str(mount))
    readings = swept(CgroupCollector(CgroupConfig(), roots), Tick(NOW, 0))
    for collector in (HostCollector, PressureCollector):
        readings += swept(collector(collector.Config(), Roots()), Tick(NOW, 0))
    surroundings = Surroundings()
    surroundings.see(Sweep(NOW, readings))
    host, use = surroundings.around("/web/app", NOW)
    assert (use.current, use.peak, use.limits) == (60 * MIB, 61 * MIB, {"memory.high": 63 * MIB})
    assert (use.effective_limit, use.limit_cgroup) == (64 * MIB, "/web")
    assert host.total > host.available > 0
