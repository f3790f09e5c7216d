"""This machine's own kernel, swept by ``cgotel agent``: each number lies between two reads of its file."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.peers.agent_process import PROTOCOLS, one_sweep, otlp_to
from tests.peers.collector_process import Collector
from tests.peers.received import Point

_WORK = "sum(range(3_000_000))"
_MICROSECONDS = 1_000_000
_ROOT_INODE = 1  # fs/kernfs/dir.c: ids of a hierarchy begin at its root


@dataclass(frozen=True)
class Cgroup:
    """A cgroup of this test's own, in which a process worked and ended."""

    directory: Path
    path: str


@pytest.fixture(scope="module")
def cgroup() -> Iterator[Cgroup]:
    mount = _cgroup2_mount()
    if mount is None:
        pytest.skip("no cgroup v2 hierarchy is mounted")
    path = f"/cgotel-peer-{os.getpid()}"
    directory = Path(f"{mount}{path}")
    try:
        directory.mkdir()
    except OSError as error:
        pytest.skip(f"no cgroup can be made: {error}")
    try:
        enter_and_work = f'echo 0 > "{directory}/cgroup.procs" && exec "{sys.executable}" -c "{_WORK}"'
        subprocess.run(["sh", "-c", enter_and_work], check=True)
        yield Cgroup(directory, path)
    finally:
        directory.rmdir()


def _cgroup2_mount() -> str | None:
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    return next((fields[1] for fields in mounts if fields[2] == "cgroup2"), None)


def totals(folder: Path, suffix: str) -> dict[tuple[str, str], float]:
    """Stall times in seconds by resource and stall type, of those files that are there."""
    found = {}
    for resource in ("cpu", "memory", "io", "irq"):
        with suppress(OSError):  # absent, or PSI is switched off
            for line in (folder / f"{resource}{suffix}").read_text().splitlines():
                stall_type, total = line.split()[0], line.rpartition("total=")[2]
                found[resource, stall_type] = int(total) / _MICROSECONDS
    return found


def flat(file: Path) -> dict[str, int]:
    """The whole numbers of a file of ``key value`` lines."""
    lines = [line.split() for line in file.read_text().splitlines()]
    return {fields[0].rstrip(":"): int(fields[1]) for fields in lines}


def booted_ns() -> int:
    """When the kernel booted, Unix time in nanoseconds."""
    return flat(Path("/proc/stat"))["btime"] * 10**9


@dataclass(frozen=True)
class Kernel:
    """What the kernel says at one moment, in the units of the metrics."""

    host_stalls: dict[tuple[str, str], float]
    cgroup_stalls: dict[tuple[str, str], float]
    cpu: dict[str, int]
    created: int

    @classmethod
    def now(cls, cgroup: Cgroup) -> Kernel:
        return cls(
            totals(Path("/proc/pressure"), ""),
            totals(cgroup.directory, ".pressure"),
            flat(cgroup.directory / "cpu.stat"),
            flat(Path("/proc/stat"))["processes"],
        )


@dataclass(frozen=True)
class Swept:
    """One sweep at the far end, and the kernel's word before and after it."""

    before: Kernel
    points: list[Point]
    after: Kernel

    def of(self, path: str) -> list[Point]:
        return [p for p in self.points if p.resource.get("process.linux.cgroup") == f"0::{path}"]

    @property
    def of_host(self) -> list[Point]:
        return [p for p in self.points if p.name.startswith("system.")]


@pytest.fixture(scope="module", params=PROTOCOLS)
def swept(
    request: pytest.FixtureRequest,
    collector_binary: Path,
    tmp_path_factory: pytest.TempPathFactory,
    cgroup: Cgroup,
) -> Swept:
    folder = tmp_path_factory.mktemp("swept")
    with Collector(collector_binary, folder / "collector") as collector:
        before = Kernel.now(cgroup)
        points = one_sweep(collector, folder / "agent", otlp_to(collector, request.param))
        return Swept(before, points, Kernel.now(cgroup))


def stalls(points: list[Point], name: str) -> dict[tuple[str, str], float | None]:
    """Stall times that arrived, by resource and stall type; ``{}`` in the name is the resource."""
    return {
        (resource, point.attributes["system.linux.pressure.stall_type"]): point.value
        for resource in ("cpu", "memory", "io", "irq")
        for point in points
        if point.name == name.format(resource)
    }


def test_cpu_time_of_a_cgroup_is_the_kernels(swept: Swept, cgroup: Cgroup) -> None:
    arrived = {p.attributes["cpu.mode"]: p for p in swept.of(cgroup.path) if p.name == "cgroup.cpu.time"}
    assert arrived.keys() == {"user", "system"}
    for mode, point in arrived.items():
        assert point.unit == "s"
        assert swept.before.cpu[f"{mode}_usec"] == swept.after.cpu[f"{mode}_usec"], "nobody works there"
        assert point.value == swept.after.cpu[f"{mode}_usec"] / _MICROSECONDS
    assert swept.after.cpu["usage_usec"] > 0


def test_pressure_of_a_cgroup_is_the_kernels(swept: Swept, cgroup: Cgroup) -> None:
    arrived = stalls(swept.of(cgroup.path), "cgroup.{}.pressure.time")
    assert arrived.keys() == swept.before.cgroup_stalls.keys()
    for key, seconds in arrived.items():
        assert seconds is not None
        assert swept.before.cgroup_stalls[key] <= seconds <= swept.after.cgroup_stalls[key]


def test_pressure_of_the_host_is_the_kernels(swept: Swept) -> None:
    arrived = stalls(swept.of_host, "system.{}.linux.pressure.time")
    assert arrived.keys() == swept.before.host_stalls.keys() - {("cpu", "full")}
    for key, seconds in arrived.items():
        assert seconds is not None
        assert swept.before.host_stalls[key] <= seconds <= swept.after.host_stalls[key]


def test_figures_of_the_host_are_the_kernels(swept: Swept) -> None:
    arrived = {point.name: point.value for point in swept.of_host if not point.attributes}
    total_kib = next(
        int(line.split()[1])
        for line in Path("/proc/meminfo").read_text().splitlines()
        if line.startswith("MemTotal:")
    )
    assert arrived["system.memory.limit"] == total_kib * 1024
    created = arrived["system.process.created"]
    assert created is not None
    assert swept.before.created <= created <= swept.after.created


def test_sums_start_where_the_kernel_says(swept: Swept, cgroup: Cgroup) -> None:
    starts = {point.start_ns for point in swept.of(cgroup.path) if point.kind == "sum"}
    assert starts == {cgroup.directory.stat().st_ctime_ns}
    assert {point.start_ns for point in swept.of_host if point.kind == "sum"} == {booted_ns()}


def test_sums_of_the_kernels_root_start_at_boot(swept: Swept, cgroup: Cgroup) -> None:
    if cgroup.directory.parent.stat().st_ino != _ROOT_INODE:
        pytest.skip("the root seen here is that of a cgroup namespace")
    assert {point.start_ns for point in swept.of("/") if point.kind == "sum"} == {booted_ns()}


def test_the_resource_names_this_machine(swept: Swept, cgroup: Cgroup) -> None:
    host_name = Path("/proc/sys/kernel/hostname").read_text().strip()
    assert {point.resource["host.name"] for point in swept.of(cgroup.path)} == {host_name}
