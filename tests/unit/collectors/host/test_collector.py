"""The host as a whole: on a recorded machine, on this one, and on one with little to say."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.unit.collectors.host import machine
from tests.unit.collectors.host.conftest import Start

from cgotel.collectors.host import HostCollector, HostConfig
from cgotel.contract import SourceStatus, State, Tick, Unavailable
from cgotel.kernel.roots import Roots
from cgotel.model import Reading

MINUTE_NS = 60 * 10**9


def sweep(collector: HostCollector, monotonic_ns: int = 0) -> Reading:
    (reading,) = collector.collect(Tick(time_ns=1_800_000_000 * 10**9, monotonic_ns=monotonic_ns))
    return reading


def statuses(collector: HostCollector) -> dict[str, SourceStatus]:
    return {status.name: status for status in collector.sources()}


def test_one_reading_of_the_host(collector: HostCollector) -> None:
    reading = sweep(collector)
    assert reading.time_ns == 1_800_000_000 * 10**9
    assert reading.entity.kind == "host"
    assert reading.entity.attributes["host.name"] == "two-nodes"
    assert reading.entity.began_ns == 1796097889 * 10**9
    assert reading.value("meminfo.MemTotal") == 24684084 * 1024
    assert reading.value("vmstat.oom_kill") == 2
    assert reading.value("stat.exits") == 51670 - 133


@pytest.mark.parametrize(
    ("source", "name", "expected", "attributes"),
    [
        ("node0.numastat.numa_hit", "numa.allocations", 14554469, {"node": 0, "result": "hit"}),
        ("node1.numastat.numa_miss", "numa.allocations", 12, {"node": 1, "result": "miss"}),
        ("node0.numastat.numa_foreign", "numa.foreign_allocations", 12, {"node": 0}),
        ("node0.numastat.interleave_hit", "numa.interleaved_allocations", 1128, {"node": 0}),
        ("node1.numastat.local_node", "numa.local_allocations", 14554400, {"node": 1, "locality": "local"}),
        ("node1.numastat.other_node", "numa.local_allocations", 69, {"node": 1, "locality": "other"}),
        ("node1.meminfo.FilePages", "numa.cached", 1262984 * 1024, {"node": 1}),
        ("zram1.mm_stat.orig_data_size", "zram.original", 5074944, {}),
        ("zram1.mm_stat.compr_data_size", "zram.compressed", 2382963, {}),
        ("zram1.mm_stat.mem_used_total", "zram.usage", 3129344, {}),
        ("zram1.mm_stat.mem_used_max", "zram.peak", 3133440, {}),
        ("zram1.mm_stat.same_pages", "zram.same_page.count", 512, {}),
        ("zram1.mm_stat.pages_compacted", "zram.compacted_pages", 4, {}),
        ("zram1.mm_stat.huge_pages", "zram.huge_page.count", 273, {}),
        ("zram1.io_stat.invalid_io", "zram.invalid_operations", 3, {}),
        ("zram1.io_stat.notify_free", "zram.freed_pages", 4, {}),
        ("zram1.bd_stat.bd_count", "zram.writeback.usage", 12 * 4096, {}),
    ],
)
def test_nodes_and_devices(
    collector: HostCollector, source: str, name: str, expected: int, attributes: dict[str, str | int]
) -> None:
    series, value = next(point for point in sweep(collector).points if point[0].source == source)
    assert series.instrument.name == f"system.memory.linux.{name}"
    assert value == expected
    if source.startswith("zram"):
        assert series.attributes == (("system.device", "zram1"),)
    else:
        assert dict(series.attributes) == {
            f"system.memory.linux.{key}": value for key, value in attributes.items()
        }


def test_the_states_of_a_node_make_up_all_of_it(collector: HostCollector) -> None:
    reading = sweep(collector)
    states = [reading.value(f"node1.meminfo.{key}") for key in ("MemUsed", "MemFree")]
    assert sum(filter(None, states)) == 12342042 * 1024


@pytest.mark.parametrize(("way", "failed", "kib_4"), [("read", 1, 345), ("write", 2, 67)])
def test_directions_of_zram(collector: HostCollector, way: str, failed: int, kib_4: int) -> None:
    reading = sweep(collector)
    prefix = "system.memory.linux.zram"
    assert reading.metric(f"{prefix}.failed_operations", disk_io_direction=way) == failed
    assert reading.metric(f"{prefix}.writeback.io", disk_io_direction=way) == kib_4 * 4096


def test_a_zram_limit_is_reported_where_there_is_one(tree: Path, collector: HostCollector) -> None:
    assert sweep(collector).value("zram1.mm_stat.mem_limit") is None
    machine.write(tree, {"sys/block/zram1/mm_stat": "1 2 3 67108864 5 6 7 8 9\n"})
    assert sweep(collector).value("zram1.mm_stat.mem_limit") == 67108864


def test_a_device_without_a_size_is_off_and_silent(tree: Path, collector: HostCollector) -> None:
    assert not any(series.source.startswith("zram0") for series in sweep(collector).series)
    status = statuses(collector)["zram0"]
    assert (status.state, status.reason) == (State.OFF, "the device has no size yet")
    assert "zramctl" in status.remedy
    machine.write(tree, {"sys/block/zram0/initstate": "1\n"})
    assert sweep(collector).value("zram0.mm_stat.orig_data_size") == 0


def test_series_stay_the_same_tuple(tree: Path, collector: HostCollector) -> None:
    first = sweep(collector)
    machine.write(tree, {"proc/vmstat": machine.VMSTAT.replace("oom_kill 2", "oom_kill 3")})
    again = sweep(collector)
    assert again.series is first.series
    assert again.value("vmstat.oom_kill") == 3
    assert first.value("vmstat.oom_kill") == 2


def test_devices_and_nodes_come_and_go(tree: Path, collector: HostCollector) -> None:
    sweep(collector)
    (tree / "sys/block/zram1").rename(tree / "sys/block/zram2")
    (tree / "sys/devices/system/node/node1").rename(tree / "sys/devices/system/node/node3")
    sources = {series.source for series in sweep(collector, MINUTE_NS).series}
    assert "zram2.mm_stat.orig_data_size" in sources
    assert "node3.numastat.numa_hit" in sources
    assert not any(source.startswith(("zram1", "node1")) for source in sources)


def test_every_metric_is_declared(start: Start) -> None:
    collector = start(HostConfig(vm_events=("pgscan_direct",), free_blocks=True))
    filled = {series.instrument for series in sweep(collector).series}
    declared = set(collector.instruments)
    assert filled <= declared
    assert {instrument.name for instrument in declared - filled} == {"system.memory.linux.zram.limit"}


def test_no_metric_is_the_namespace_of_another(collector: HostCollector) -> None:
    names = {instrument.name for instrument in collector.instruments}
    assert not {(a, b) for a in names for b in names if b.startswith(f"{a}.")}


def test_no_two_series_are_the_same(start: Start) -> None:
    collector = start(HostConfig(vm_events=("pgscan_direct",), free_blocks=True))
    series = sweep(collector).series
    assert len({(one.instrument.name, one.attributes) for one in series}) == len(series)
    assert len({one.source for one in series}) == len(series)


def test_every_file_is_a_source(collector: HostCollector) -> None:
    sweep(collector)
    assert {name: status.state for name, status in statuses(collector).items()} == {
        **dict.fromkeys(("meminfo", "swaps", "vmstat", "stat", "loadavg", "buddyinfo"), State.OK),
        **{f"node{node}/{file}": State.OK for node in (0, 1) for file in ("numastat", "meminfo")},
        **{f"zram1/{file}": State.OK for file in ("mm_stat", "io_stat", "bd_stat")},
        "zram0": State.OFF,
    }


@pytest.mark.parametrize(
    ("gone", "source", "reason", "silent"),
    [
        ("proc/swaps", "swaps", "no swap device", "swaps."),
        ("proc/vmstat", "vmstat", "this kernel has no such file", "vmstat."),
        ("sys/devices", "node", "this kernel knows no NUMA nodes", "node"),
        ("sys/block", "zram", "no zram device", "zram"),
        ("sys/block/zram1/bd_stat", "zram1/bd_stat", "no writeback to a disk", "zram1.bd_stat."),
        ("sys/block/zram1/initstate", "zram1", "cannot be read", "zram"),
    ],
)
def test_what_is_absent_is_named_and_costs_its_own_points_only(
    tree: Path, start: Start, gone: str, source: str, reason: str, silent: str
) -> None:
    (tree / gone).rename(tree / "gone")
    collector = start()
    reading = sweep(collector)
    status = statuses(collector)[source]
    assert status.state is State.ABSENT
    assert status.reason.endswith(reason)
    assert reading.value("meminfo.MemTotal") == 24684084 * 1024
    assert not any(series.source.startswith(silent) for series in reading.series)


def test_no_swap_says_so(tree: Path, start: Start) -> None:
    machine.write(tree, {"proc/swaps": machine.SWAPS.partition("\n")[0] + "\n"})
    collector = start()
    assert not any(series.source.startswith("swaps") for series in sweep(collector).series)
    status = statuses(collector)["swaps"]
    assert (status.state, status.reason) == (State.ABSENT, "no swap device")
    assert "swapon" in status.remedy


def test_an_unknown_event_is_named(start: Start) -> None:
    collector = start(HostConfig(vm_events=("pgscan_direct", "no_such_event")))
    sweep(collector)
    found = statuses(collector)
    assert found["vmstat.no_such_event"].state is State.ABSENT
    assert "vmstat.pgscan_direct" not in found


def test_a_file_without_a_number_has_failed(tree: Path, collector: HostCollector) -> None:
    machine.write(tree, {"proc/meminfo": "what?\n"})
    assert sweep(collector).value("meminfo.MemTotal") is None
    assert statuses(collector)["meminfo"].state is State.FAILED


def test_a_file_that_may_not_be_read_is_denied(tree: Path) -> None:
    """As another user, for root may read everything."""
    script = """
import os
from cgotel.collectors.host import HostCollector, HostConfig
from cgotel.contract import Tick
from cgotel.kernel.roots import Roots
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
collector = HostCollector(HostConfig(), Roots("/proc/self/cwd/proc", "/proc/self/cwd/sys", None))
collector.start()
(reading,) = collector.collect(Tick(0, 0))
print(reading.value("vmstat.oom_kill"), reading.value("loadavg.threads"))
for status in collector.sources():
    if status.name == "vmstat":
        print(status.state, status.remedy)
"""
    (tree / "proc/vmstat").chmod(0)
    tree.chmod(0o755)  # above it, only the owner may pass
    command = [sys.executable, "-c", script]
    result = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)
    assert result.stderr == ""
    assert result.stdout.splitlines() == [
        "None 133",
        "denied run as root, or give the agent's user read access",
    ]


def test_a_file_that_comes_back_is_read_again(tree: Path, collector: HostCollector) -> None:
    source, file = "zram1.io_stat.invalid_io", tree / "sys/block/zram1/io_stat"
    file.rename(tree / "away")
    assert sweep(collector).value(source) is None
    (tree / "away").rename(file)
    assert sweep(collector, 1).value(source) is None
    assert sweep(collector, MINUTE_NS).value(source) == 3


def test_without_any_file_it_cannot_serve(tmp_path: Path) -> None:
    collector = HostCollector(HostConfig(), Roots(str(tmp_path / "none"), str(tmp_path), None))
    with pytest.raises(Unavailable) as raised:
        collector.start()
    assert raised.value.status.state is State.ABSENT
    assert "HOST_PROC" in raised.value.status.remedy


def test_descriptors_are_given_back(start: Start) -> None:
    before = len(os.listdir("/proc/self/fd"))
    collector = start()
    sweep(collector)
    assert len(os.listdir("/proc/self/fd")) > before
    collector.close()
    collector.close()
    assert len(os.listdir("/proc/self/fd")) == before


def test_it_can_start_again(collector: HostCollector) -> None:
    first = sweep(collector)
    collector.close()
    collector.start()
    assert list(sweep(collector).values) == list(first.values)


garbage = st.binary(max_size=300) | st.sampled_from(sorted(machine.FILES.values())).flatmap(
    lambda content: st.integers(0, len(content)).map(lambda cut: content[:cut].encode())
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(contents=st.dictionaries(st.sampled_from(sorted(machine.FILES)), garbage, min_size=1))
def test_whatever_the_files_hold_it_reads_on(
    tree: Path, collector: HostCollector, contents: dict[str, bytes]
) -> None:
    for name, content in contents.items():
        (tree / name).write_bytes(content)
    reading = sweep(collector)
    assert all(0 <= value < 2**63 for value in reading.values)
    assert len(set(reading.series)) == len(reading.series)
    assert list(collector.sources())
