"""What holds workloads back, out of two sweeps."""

import pytest
from tests.unit.outputs.sweeps import cgroup, reading, sweep

from cgotel.model import Entity, Instrument, Reading
from cgotel.outputs.summary import Bound, Host, Stall, summarize

SECOND = 1_000_000  # in microseconds, as the kernel counts
GIB = 2**30
POD = "/kubepods/podx"
MAIN = f"{POD}/main"

QUOTA = {"cpu.stat.nr_periods": 0, "cpu.stat.nr_throttled": 0, "cpu.stat.throttled_usec": 0}


def row_of(path, *sweeps, **options):
    summary = summarize(*reversed(sweeps), **options)
    [row] = [row for row in summary.rows if row.path == path]
    return row


def test_pressure_is_a_share_of_the_time_between_two_sweeps():
    web = cgroup("/web.service")
    before = sweep(reading(web, {"memory.pressure.some.total": 5 * SECOND}))
    after = sweep(
        reading(web, {"memory.pressure.some.total": 6 * SECOND, "memory.pressure.full.total": 7}), at_s=4
    )
    assert row_of("/web.service", before, after).stalled["memory"] == Stall(0.25, None)


def test_of_one_sweep_there_are_totals_in_seconds():
    web = cgroup("/web.service")
    numbers = {
        "cpu.pressure.some.total": 3 * SECOND,
        "cpu.stat.user_usec": 2 * SECOND,
        "cpu.stat.system_usec": SECOND,
        "cpu.stat.throttled_usec": SECOND // 2,
    }
    row = row_of("/web.service", sweep(reading(web, numbers)))
    assert row.stalled["cpu"].some == 3
    assert row.cpu == 3
    assert row.throttled == Bound(0.5, "self")


def test_a_cgroup_made_anew_under_the_same_path_has_no_share_yet():
    numbers = {"cpu.pressure.some.total": SECOND, "cgroup.procs.count": 1}
    before = sweep(reading(cgroup("/a.service", 1), numbers))
    after = sweep(reading(cgroup("/a.service", 2), numbers), at_s=2)
    assert row_of("/a.service", before, after).stalled["cpu"] == Stall(None, None)


def test_a_clock_set_back_leaves_totals():
    numbers = {"cpu.pressure.some.total": SECOND}
    web = cgroup("/web.service")
    summary = summarize(sweep(reading(web, numbers), at_s=-60), sweep(reading(web, numbers)))
    assert summary.interval_s is None
    assert summary.rows[0].stalled["cpu"].some == 1


def test_throttling_is_the_share_of_periods_whose_quota_ran_out():
    web = cgroup("/web.service")
    before = sweep(reading(web, QUOTA))
    numbers = {"cpu.stat.nr_periods": 20, "cpu.stat.nr_throttled": 5, "cpu.stat.throttled_usec": 99 * SECOND}
    assert row_of("/web.service", before, sweep(reading(web, numbers), at_s=2)).throttled == Bound(
        0.25, "self"
    )


def test_a_quota_that_was_not_used_throttled_nothing():
    web = cgroup("/web.service")
    row = row_of("/web.service", sweep(reading(web, QUOTA)), sweep(reading(web, QUOTA), at_s=2))
    assert row.throttled == Bound(0.0, "self")


def test_without_a_quota_anywhere_throttling_is_not_measured():
    web = cgroup("/web.service")
    numbers = {"cpu.stat.user_usec": 1}
    row = row_of("/web.service", sweep(reading(web, numbers)), sweep(reading(web, numbers), at_s=2))
    assert row.throttled is None


def test_an_ancestors_quota_that_ran_out_more_often_is_the_one_that_counts():
    pod, main = cgroup(POD), cgroup(MAIN)
    above = {"cpu.stat.ancestor.throttled_usec": (0, POD)}
    before = sweep(reading(pod, QUOTA), reading(main, QUOTA, above))
    after = sweep(
        reading(pod, {"cpu.stat.nr_periods": 10, "cpu.stat.nr_throttled": 8}),
        reading(main, {"cpu.stat.nr_periods": 10, "cpu.stat.nr_throttled": 1}, above),
        at_s=2,
    )
    assert row_of(MAIN, before, after).throttled == Bound(0.8, POD)


def test_an_ancestor_that_is_not_read_itself_is_judged_by_its_time():
    main = cgroup(MAIN)
    before = sweep(reading(main, QUOTA, {"cpu.stat.ancestor.throttled_usec": (0, POD)}))
    after = sweep(reading(main, QUOTA, {"cpu.stat.ancestor.throttled_usec": (SECOND, POD)}), at_s=2)
    assert row_of(MAIN, before, after).throttled == Bound(0.5, POD)


@pytest.mark.parametrize(
    ("owned", "limit", "left"),
    [
        (
            {"memory.effective_limit": (8 * GIB, "host"), "memory.headroom": (GIB, "host")},
            Bound(8 * GIB, "host"),
            Bound(GIB, "host"),
        ),
        (
            {
                "memory.effective_limit": (2 * GIB, POD),
                "memory.effective_high": (GIB, "self"),
                "memory.headroom": (GIB, POD),
                "memory.high_headroom": (-5, "self"),
            },
            Bound(GIB, "self", high=True),
            Bound(-5, "self", high=True),
        ),
        ({}, None, None),
    ],
)
def test_the_narrower_of_max_and_high_is_the_limit_in_force(owned, limit, left):
    row = row_of(MAIN, sweep(reading(cgroup(MAIN), {}, owned)))
    assert (row.memory_limit, row.memory_left) == (limit, left)


@pytest.mark.parametrize(
    ("left", "told"), [(21, None), (20, Bound(20, POD)), (0, Bound(0, POD)), (-10, Bound(-10, POD))]
)
def test_pids_are_told_near_the_limit_only(left, told):
    owned = {"pid.effective_limit": (100, "self"), "pid.headroom": (left, POD)}
    assert row_of(MAIN, sweep(reading(cgroup(MAIN), {}, owned))).pids_left == told


def test_most_held_back_first_by_whatever_holds_it():
    def held(path, **numbers):
        named = {key.replace("__", "."): value for key, value in numbers.items()}
        return reading(cgroup(path), {"cgroup.procs.count": 1, **named})

    quiet = ("/d", "/b", "/c", "/e", "/a")
    before = sweep(
        *(
            held(p, cpu__pressure__some__total=0, io__pressure__some__total=0, cpu__stat__nr_periods=0)
            for p in quiet
        ),
        held("/b", cpu__stat__nr_throttled=0),
    )
    after = sweep(
        held("/a", cpu__pressure__some__total=SECOND // 2),
        held("/b", cpu__stat__nr_periods=10, cpu__stat__nr_throttled=9),
        held("/c", io__pressure__some__total=SECOND),
        held("/d"),
        held("/e", cpu__pressure__some__total=0),
        at_s=2,
    )
    assert [row.path for row in summarize(after, before).rows] == ["/b", "/c", "/a", "/e", "/d"]


def test_only_cgroups_with_processes_are_listed_and_no_root_beside_them():
    summary = summarize(
        sweep(
            reading(cgroup("/"), {"cgroup.procs.count": 90}),
            reading(cgroup("/system.slice"), {"cgroup.procs.count": 0}),
            reading(cgroup("/system.slice/web.service"), {"cgroup.procs.count": 2}),
            reading(cgroup("/threaded"), {}),
        )
    )
    assert {row.path for row in summary.rows} == {"/system.slice/web.service", "/threaded"}
    assert len(summary.names) == 4


def test_the_root_is_listed_where_it_is_alone():
    alone = sweep(reading(cgroup("/"), {"cgroup.procs.count": 90}))
    assert [row.path for row in summarize(alone).rows] == ["/"]


def test_cgroups_that_were_asked_for_are_listed_without_processes_too():
    found = summarize(
        sweep(reading(cgroup("/a.slice"), {"cgroup.procs.count": 0}), reading(cgroup("/b"), {})),
        only={"/a.slice"},
    )
    assert [row.name for row in found.rows] == ["a.slice"]


HOST = Entity("host", "vm")


def test_the_host_speaks_for_itself():
    numbers = {"pressure.io.some.total": 0, "pressure.io.full.total": 0, "pressure.cpu.full.total": 0}
    later = {**numbers, "pressure.io.some.total": SECOND, "pressure.io.full.total": SECOND // 2}
    memory = {"meminfo.MemAvailable": 3 * GIB, "meminfo.MemTotal": 8 * GIB}
    summary = summarize(
        sweep(reading(HOST, later), reading(HOST, memory), at_s=2), sweep(reading(HOST, numbers))
    )
    assert summary.host.stalled["io"] == Stall(0.5, 0.25)
    assert summary.host.stalled["cpu"] == Stall(None, None)  # "full" is not defined for the machine
    assert (summary.host.memory_available, summary.host.memory_total) == (3 * GIB, 8 * GIB)


def test_where_the_host_is_silent_the_root_cgroup_says_the_same():
    owned = {"memory.headroom": (GIB, "host"), "memory.effective_limit": (2 * GIB, "host")}
    numbers = {"io.pressure.some.total": SECOND, "io.pressure.full.total": 0}
    host = summarize(sweep(reading(cgroup("/"), numbers, owned))).host
    assert host.stalled["io"] == Stall(1.0, 0.0)
    assert (host.memory_available, host.memory_total) == (GIB, 2 * GIB)


def test_an_empty_sweep_says_nothing():
    summary = summarize(sweep())
    assert summary.rows == []
    assert summary.host == Host({resource: Stall() for resource in ("cpu", "memory", "io", "irq")})


def test_ends_that_are_counted_are_no_row_and_hide_none():
    web = reading(cgroup("/web.service"), {"cpu.pressure.some.total": SECOND})
    exits = Instrument("cgotel.container.exits", "counter", "{exit}", "").series("exits.crash")
    of_web = Entity("workload", "systemd:web.service", web.entity.attributes)
    of_gone = Entity("workload", "cgroup:/gone", {"process.linux.cgroup": "0::/gone"})
    counted = [Reading.of(entity, web.time_ns, [(exits, 1)]) for entity in (of_web, of_gone)]
    assert summarize(sweep(web, *counted)).rows == summarize(sweep(web)).rows
