"""The cpu and cpuset controllers' files (admin-guide/cgroup-v2.rst, "CPU" and "Cpuset").

    cpu.stat        usage_usec 27381    cpu.max  20000 100000
                    user_usec 11000
                    system_usec 16381
                    nr_periods 12
                    nr_throttled 5
                    throttled_usec 380113

user, system and usage are there without the controller, and count the descendants. The bandwidth
keys come with it and count this cgroup's own quota only: a container that its pod's quota holds
back shows 0 there. Since Linux 6.6 cpu.stat.local adds what ancestors' quotas cost.
"""

from __future__ import annotations

from cgotel.collectors.cgroup.tables import Family
from cgotel.collectors.tables import MICROSECONDS, NOTHING, FileTable, counted, keys, rows, value
from cgotel.kernel import formats
from cgotel.kernel.formats import Columns
from cgotel.model import Series


def tables(family: Family) -> list[FileTable]:
    """What is read for a cgroup of this family."""
    return [_cpu_stat(family), _cpu_stat_local(family), _cpu_max(family), *_settings(family)]


def _cpu_stat(family: Family) -> FileTable:
    time = family.counter("cpu.time", "s", "CPU time consumed, descendants included", "double")
    seconds = {
        "nice_usec": ("cpu.nice.time", "CPU time of niced processes; a part of user time"),
        "throttled_usec": ("cpu.throttled.time", "Time that this cgroup's own quota held it back"),
        "burst_usec": ("cpu.burst.time", "CPU time used above the quota out of burst credit"),
        "core_sched.force_idle_usec": (
            "cpu.force_idle.time",
            "Time a sibling was forced idle by core scheduling",
        ),
    }
    counts = {
        "nr_periods": ("cpu.periods", "{period}", "Enforcement periods of this cgroup's own quota"),
        "nr_throttled": (
            "cpu.throttled.periods",
            "{period}",
            "Periods in which the own quota ran out",
        ),
        "nr_bursts": ("cpu.bursts", "{burst}", "Periods in which burst credit was used"),
    }
    table = rows("cpu.stat", time, "cpu.mode", "user_usec=user system_usec=system", MICROSECONDS)
    for key, (name, description) in seconds.items():
        instrument = family.counter(name, "s", description, "double")
        table[key] = instrument.series(f"cpu.stat.{key}", MICROSECONDS)
    for key, (name, unit, description) in counts.items():
        table[key] = family.counter(name, unit, description).series(f"cpu.stat.{key}")
    return keys("cpu.stat", table)


def _cpu_stat_local(family: Family) -> FileTable:
    instrument = family.counter(
        "cpu.throttled.local_time",
        "s",
        "Time held back by any quota, ancestors' included",
        "double",
    )
    row = instrument.series("cpu.stat.local.throttled_usec", MICROSECONDS)
    return keys("cpu.stat.local", {"throttled_usec": row})


def _cpu_max(family: Family) -> FileTable:
    limit = family.updown("cpu.limit", "{cpu}", "Own CPU quota in CPUs; absent without one", "double")
    period = family.gauge("cpu.period", "s", "Enforcement period of the quota", "double")
    quota_row = limit.series("cpu.max.limit")
    period_row = period.series("cpu.max.1", MICROSECONDS)
    limited, unlimited = (quota_row, period_row), (period_row,)

    def parse(data: bytes) -> Columns[Series]:
        fields = formats.quota_and_period(data)
        if fields is None:
            return NOTHING
        quota, length = fields
        return Columns(unlimited, [length]) if quota is None else Columns(limited, [quota / length, length])

    return FileTable("cpu.max", parse)


def _settings(family: Family) -> list[FileTable]:
    weight = family.gauge("cpu.weight", "1", "Share of CPU time against siblings, 1 to 10000")
    cpus = family.updown("cpuset.cpu.count", "{cpu}", "CPUs that the cgroup may run on")
    nodes = family.updown("cpuset.node.count", "{node}", "NUMA nodes that the cgroup may allocate from")
    return [
        value("cpu.weight", weight),
        counted("cpuset.cpus.effective", cpus),
        counted("cpuset.mems.effective", nodes),
    ]
