"""The host collector against the files of the machine that runs the tests, read before and after."""

import os
import re
import subprocess
from pathlib import Path

import pytest
from tests.unit.collectors.host.conftest import Start

from cgotel.collectors.host import HostConfig, vmstat
from cgotel.contract import Tick
from cgotel.kernel.roots import Roots
from cgotel.model import Reading

PROC = Path("/proc")
ZRAM_CONTROL = Path("/sys/class/zram-control")

COUNTERS = {
    "vmstat.pswpin": ("vmstat", r"^pswpin (\d+)$"),
    "vmstat.pswpout": ("vmstat", r"^pswpout (\d+)$"),
    "vmstat.pgmajfault": ("vmstat", r"^pgmajfault (\d+)$"),
    "vmstat.oom_kill": ("vmstat", r"^oom_kill (\d+)$"),
    "vmstat.allocstall_normal": ("vmstat", r"^allocstall_normal (\d+)$"),
    "stat.processes": ("stat", r"^processes (\d+)$"),
}


def sweep(start: Start, config: HostConfig | None = None) -> Reading:
    (reading,) = start(config, Roots.discover({})).collect(Tick(0, 0))
    return reading


def stands_in(file: str, pattern: str) -> int:
    found = re.search(pattern, (PROC / file).read_text(), re.MULTILINE)
    assert found is not None, f"{pattern} is not in /proc/{file}"
    return int(found[1])


def test_counters_lie_between_two_looks(start: Start) -> None:
    before = {source: stands_in(*place) for source, place in COUNTERS.items()}
    reading = sweep(start)
    after = {source: stands_in(*place) for source, place in COUNTERS.items()}
    for source in COUNTERS:
        value = reading.value(source)
        assert value is not None, source
        assert before[source] <= value <= after[source], source


def test_memory_is_what_meminfo_says(start: Start) -> None:
    reading = sweep(start)
    assert reading.metric("system.memory.limit") == stands_in("meminfo", r"^MemTotal: +(\d+) kB$") * 1024
    page_size = stands_in("meminfo", r"^Hugepagesize: +(\d+) kB$") * 1024
    assert reading.metric("system.memory.linux.hugepages.page_size") == page_size
    used = reading.metric("system.memory.usage", system_memory_state="used")
    available = reading.metric("system.memory.linux.available")
    assert used is not None
    assert available is not None
    assert used + available == reading.metric("system.memory.limit")


def test_a_file_of_several_pages_is_read_to_its_end(start: Start) -> None:
    """/proc/vmstat gives a page at most to each read(2)."""
    names = [line.split()[0] for line in (PROC / "vmstat").read_text().splitlines()]
    events = tuple(name for name in names if vmstat.refusal(name) is None)
    reading = sweep(start, HostConfig(vm_events=events))
    assert {series.source for series in reading.series} >= {f"vmstat.{name}" for name in events}


def test_every_zone_has_its_free_blocks(start: Start) -> None:
    reading = sweep(start, HostConfig(free_blocks=True))
    lines = (PROC / "buddyinfo").read_text().splitlines()
    counts = [s for s in reading.series if s.instrument.name == "system.memory.linux.free_block.count"]
    assert len(counts) == sum(len(line.split()) - 4 for line in lines)
    shares = [s for s in reading.series if s.instrument.name == "system.memory.linux.fragmentation"]
    assert len(shares) == len(lines)


def test_every_node_is_read(start: Start) -> None:
    nodes = sorted(Path("/sys/devices/system/node").glob("node[0-9]*"))
    if not nodes:
        pytest.skip("this kernel has no NUMA nodes")
    reading = sweep(start)
    for node in nodes:
        total = re.search(r"MemTotal: +(\d+) kB", (node / "meminfo").read_text())
        assert total is not None
        states = [reading.value(f"{node.name}.meminfo.{key}") for key in ("MemUsed", "MemFree")]
        assert sum(filter(None, states)) == int(total[1]) * 1024
        assert reading.value(f"{node.name}.numastat.numa_hit") is not None


@pytest.mark.skipif(
    os.geteuid() != 0 or not (ZRAM_CONTROL / "hot_add").exists(), reason="needs root and the zram module"
)
def test_a_real_zram_device(start: Start) -> None:
    number = (ZRAM_CONTROL / "hot_add").read_text().strip()
    device = Path(f"/sys/block/zram{number}")
    try:
        (device / "disksize").write_text("16M")
        blocks = os.urandom(64 * 4096) + bytes(32 * 4096)
        Path(f"/dev/zram{number}").write_bytes(blocks)
        subprocess.run(["sync"], check=True)
        reading = sweep(start)
        columns = list(map(int, (device / "mm_stat").read_text().split()))
        prefix = f"zram{number}.mm_stat"
        assert reading.value(f"{prefix}.orig_data_size") == columns[0] >= 64 * 4096
        assert reading.value(f"{prefix}.compr_data_size") == columns[1] > 0
        assert reading.value(f"{prefix}.mem_used_total") == columns[2] > 0
        assert reading.value(f"{prefix}.same_pages") == columns[5] >= 32
        assert reading.value(f"{prefix}.mem_limit") is None
        assert reading.value(f"zram{number}.io_stat.failed_writes") == 0
    finally:
        (device / "reset").write_text("1")
        (ZRAM_CONTROL / "hot_remove").write_text(number)
