"""What no single file says: rates, working set, whose limit, which processes came and went."""

import pytest

WEB = "web.service"
EFFECTIVE = "cgroup.memory.effective_limit"


def cpu_stat(user: int, system: int) -> str:
    return f"usage_usec {user + system}\nuser_usec {user}\nsystem_usec {system}\n"


def test_cpu_usage_is_the_rise_over_the_time_between_two_sweeps(cgroups) -> None:
    cgroups.write({WEB: {"cpu.stat": cpu_stat(0, 0), "cpu.max": "200000 100000\n"}})
    assert cgroups.sweep(10)[f"/{WEB}"].value("cpu.usage") is None
    cgroups.write({WEB: {"cpu.stat": cpu_stat(3_000_000, 1_000_000)}})
    web = cgroups.sweep(14)[f"/{WEB}"]
    assert web.value("cpu.usage") == 1.0
    assert web.value("cpu.utilization") == 0.5
    assert cgroups.sweep(24)[f"/{WEB}"].value("cpu.usage") == 0


@pytest.mark.parametrize(
    ("second", "content"),
    [
        (20, cpu_stat(1_000_000, 999_999)),  # the counter fell
        (10, cpu_stat(9_000_000, 0)),  # no time went by
        (9, cpu_stat(9_000_000, 0)),  # the clock fell
        (20, "usage_usec 9000000\nuser_usec 9000000\n"),  # half of it is missing
        (20, ""),
    ],
)
def test_a_rate_that_cannot_be_told_is_none_and_the_next_one_starts_afresh(
    cgroups, second: int, content: str
) -> None:
    cgroups.write({WEB: {"cpu.stat": cpu_stat(1_000_000, 1_000_000), "cgroup.events": "populated 1\n"}})
    cgroups.sweep(10)
    cgroups.write({WEB: {"cpu.stat": content}})
    broken = cgroups.sweep(second)[f"/{WEB}"]
    assert broken.value("cpu.usage") is None
    assert broken.value("cpu.utilization") is None
    cgroups.write({WEB: {"cpu.stat": cpu_stat(9_000_000, 1_000_000)}})
    cgroups.sweep(30)
    cgroups.write({WEB: {"cpu.stat": cpu_stat(9_000_000, 6_000_000)}})
    assert cgroups.sweep(40)[f"/{WEB}"].value("cpu.usage") == 0.5


def test_usage_is_not_averaged_over_what_was_not_seen(cgroups) -> None:
    for second, content in ((0, cpu_stat(0, 0)), (10, ""), (20, cpu_stat(9_000_000, 0))):
        cgroups.write({WEB: {"cpu.stat": content, "cgroup.events": "populated 1\n"}})
        assert cgroups.sweep(second)[f"/{WEB}"].value("cpu.usage") is None


def test_utilization_needs_a_limit_that_is_not_zero(cgroups) -> None:
    cgroups.write({WEB: {"cpu.stat": cpu_stat(0, 0), "cpuset.cpus.effective": "\n"}})
    cgroups.sweep(0)
    web = cgroups.sweep(10)[f"/{WEB}"]
    assert web.value("cpu.usage") == 0
    assert web.value("cpu.utilization") is None


@pytest.mark.parametrize(
    ("files", "working_set", "available", "utilization"),
    [
        (
            {"memory.current": "100\n", "memory.max": "400\n", "memory.stat": "inactive_file 30\n"},
            70,
            330,
            0.25,
        ),
        (
            {"memory.current": "100\n", "memory.max": "max\n", "memory.stat": "inactive_file 30\n"},
            70,
            None,
            None,
        ),
        ({"memory.current": "100\n", "memory.max": "50\n", "memory.stat": "inactive_file 0\n"}, 100, 0, 2.0),
        ({"memory.current": "100\n", "memory.max": "0\n", "memory.stat": "inactive_file 0\n"}, 100, 0, None),
        (
            {"memory.current": "20\n", "memory.max": "50\n", "memory.stat": "inactive_file 30\n"},
            0,
            50,
            0.4,
        ),  # stat lags
        ({"memory.current": "20\n", "memory.max": "50\n", "memory.stat": "anon 1\n"}, None, None, 0.4),
        ({"memory.max": "50\n", "memory.stat": "inactive_file 30\n"}, None, None, None),
        ({"memory.current": "20\n"}, None, None, None),
    ],
)
def test_memory_that_is_used_and_left(cgroups, files, working_set, available, utilization) -> None:
    cgroups.write({WEB: {"cpu.stat": cpu_stat(0, 0), **files}})
    web = cgroups.sweep()[f"/{WEB}"]
    assert web.value("memory.working_set") == working_set
    assert web.value("memory.available") == available
    assert web.value("memory.utilization") == utilization


def test_minor_faults_are_those_that_are_not_major_and_never_fall(cgroups) -> None:
    def minor(second: int, faults: int, major: int):
        cgroups.write(
            {WEB: {"cpu.stat": cpu_stat(0, 0), "memory.stat": f"pgfault {faults}\npgmajfault {major}\n"}}
        )
        return cgroups.sweep(second)[f"/{WEB}"].metric(
            "cgroup.paging.faults", system_paging_fault_type="minor"
        )

    assert minor(0, 100, 10) == 90
    assert minor(10, 101, 20) == 90  # the kernel does not update both at once
    assert minor(20, 150, 20) == 130
    cgroups.write({WEB: {"memory.stat": "pgfault 200\n"}})
    assert cgroups.sweep(30)[f"/{WEB}"].value("memory.stat.pgminfault") is None


def test_three_nested_limits_the_narrowest_is_in_force_and_named(cgroups) -> None:
    cgroups.write(
        {
            "kubepods.slice": {
                "cpu.stat": cpu_stat(0, 0),
                "memory.max": "1000\n",
                "memory.current": "990\n",
                "pids.max": "max\n",
                "pod.slice": {
                    "cpu.stat": cpu_stat(0, 0),
                    "memory.max": "300\n",
                    "memory.current": "250\n",
                    "cpu.max": "50000 100000\n",
                    "pids.max": "10\n",
                    "pids.current": "4\n",
                    "leaf.scope": {
                        "cpu.stat": cpu_stat(0, 0),
                        "memory.max": "500\n",
                        "memory.current": "40\n",
                        "memory.high": "30\n",
                        "cpu.max": "max 100000\n",
                    },
                },
            }
        }
    )
    pod = "/kubepods.slice/pod.slice"
    leaf = cgroups.sweep()[f"{pod}/leaf.scope"]
    assert limits(leaf) == {
        "memory.effective_limit": (300, pod),
        "memory.effective_high": (30, "self"),
        "memory.headroom": (10, "/kubepods.slice"),
        "memory.high_headroom": (-10, "self"),
        "cpu.effective_limit": (0.5, pod),
        "pid.effective_limit": (10, pod),
        "pid.headroom": (6, pod),
    }
    assert cgroups.sweep()["/"].attribute(EFFECTIVE, "cgroup.limit.owner") == "host"


def limits(reading) -> dict[str, tuple[float, str]]:
    return {
        series.source: (raw, attributes["cgroup.limit.owner"])
        for series, raw in reading.points
        if (attributes := dict(series.attributes)).keys() == {"cgroup.limit.owner"}
    }


def test_an_ancestors_throttling_is_joined_to_every_leaf_below_it_and_to_no_other(cgroups) -> None:
    quota = {"cpu.max": "50000 100000\n", "cpu.stat": cpu_stat(0, 0) + "throttled_usec 7000000\n"}
    free = {"cpu.max": "max 100000\n", "cpu.stat": cpu_stat(0, 0) + "throttled_usec 0\n"}
    cgroups.write({"a": {**quota, "b": {**free, "c": {**quota, "d": free}}}, "e": {"f": free, **free}})
    readings = cgroups.sweep()
    held_back = {
        path: {
            dict(series.attributes)["cgroup.limit.owner"]: series.convert(raw)
            for series, raw in reading.points
            if series.instrument.name == "cgroup.cpu.ancestor.throttled.time"
        }
        for path, reading in readings.items()
    }
    assert held_back == {
        "/": {}, "/a": {}, "/a/b": {"/a": 7.0}, "/a/b/c": {"/a": 7.0}, "/a/b/c/d": {"/a": 7.0, "/a/b/c": 7.0},
        "/e": {}, "/e/f": {},
    }  # fmt: skip


def test_processes_that_came_and_went_are_counted_as_far_as_they_were_seen(cgroups) -> None:
    def seen(second: int, pids: str) -> list:
        cgroups.write({WEB: {"cpu.stat": cpu_stat(0, 0), "cgroup.procs": pids}})
        web = cgroups.sweep(second)[f"/{WEB}"]
        return [web.value(f"cgroup.procs.{what}") for what in ("count", "observed_starts", "observed_exits")]

    assert seen(0, "1\n2\n3\n") == [3, 3, 0]
    assert seen(10, "2\n3\n4\n5\n") == [4, 5, 1]
    assert seen(20, "") == [0, 5, 5]
    assert seen(30, "7\n") == [1, 6, 5]
    assert seen(40, "0\n0\n7\n") == [3, None, None]  # of an outer pid namespace: they count, unseen
    assert seen(50, "8\n9") == [None, None, None]  # cut
    assert seen(60, "7\n9\n") == [2, 7, 5]
