"""The nvml collector: a reading for each GPU and MIG instance, one for each cgroup that holds memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import msgspec

from cgotel.collectors.instruments import Instruments
from cgotel.collectors.nvml.owners import Owners, Shares
from cgotel.collectors.nvml.series import GpuSeries
from cgotel.contract import Collector, CollectorSettings, SourceStatus, State, Tick
from cgotel.kernel import tasks
from cgotel.kernel.roots import Roots
from cgotel.model import Entity, Point, Reading, Series
from cgotel.nvml import presence
from cgotel.nvml.gpus import Gpu
from cgotel.nvml.presence import short_address
from cgotel.nvml.session import ABSENT, Session, Snapshot
from cgotel.nvml.worker import Worker

_LATE = SourceStatus(
    "nvml/driver", State.FAILED, "the driver did not answer in time", "see dmesg for Xid lines"
)
_FOREIGN = SourceStatus(
    "nvml/processes",
    State.MASKED,
    "the agent is in a pid namespace of its own: the driver leaves out all processes outside",
    "start the agent's container with the host's pid namespace (--pid=host, hostPID: true)",
)
_DENIED_REMEDY = "run as root"


class NvmlConfig(CollectorSettings, frozen=True):
    """``[collectors.nvml]``."""

    deadline: Annotated[float, msgspec.Meta(gt=0, le=60)] = 2.0
    """Seconds for which a sweep waits for the driver; then the GPUs' points of that sweep are missing."""
    processes: bool = False
    """Also memory by process, with the process's pid: as many series as there are processes."""
    library: str = ""
    """Path of libnvidia-ml.so.1 where the loader does not find it."""
    release_file: str = "/run/cgotel/release-gpus"
    """While this file is there, the GPUs are let go of: for a reset, a MIG change, another driver."""


class NvmlCollector(Collector):
    """NVIDIA GPUs, and their memory by cgroup."""

    name = "nvml"
    Config = NvmlConfig
    needs = ("NVIDIA's driver with libnvidia-ml.so.1 and /dev/nvidia*; /proc of the host for containers",)

    config: NvmlConfig

    def __init__(self, config: NvmlConfig, roots: Roots) -> None:
        super().__init__(config, roots)
        make = Instruments()
        self._series = GpuSeries(make)
        unattributed = make.updown(
            "nvidia.gpu.memory.unattributed", "By", "Memory in use that no process accounts for"
        )
        self._unattributed = unattributed.series("memory_unattributed_bytes")
        unmapped = make.updown("cgotel.gpu.process.unmapped", "{process}", "Processes of no known cgroup")
        self._unmapped = unmapped.series("processes_unmapped")
        self._of_process = make.updown(
            "nvidia.gpu.process.memory.usage", "By", "Memory of the GPU that a process uses"
        )
        self._of_cgroup = make.updown(
            "nvidia.gpu.cgroup.memory.usage", "By", "Memory of the GPU that the cgroup's processes use"
        )
        self.instruments = tuple(make.instruments.values())
        self._owned: dict[str, Series] = {}
        self._rows: dict[tuple[Series, ...], tuple[Series, ...]] = {}
        self._entities: dict[str, Entity] = {}
        self._energy: dict[str, int] = {}
        self._owners = Owners(roots.proc, roots.cgroup)
        self._worker: Worker | None = None
        self._snapshot = Snapshot((), ABSENT)
        self._late = False
        self._foreign = False

    def start(self) -> None:
        self._foreign = not tasks.counts_as_host("/proc")

    def collect(self, tick: Tick) -> Iterator[Reading]:
        worker = self._driver()
        if worker is None:
            self._snapshot = Snapshot((), ABSENT)
            return
        snapshot = worker.look(self.config.deadline)
        self._late = snapshot is None
        if snapshot is None:
            return
        self._snapshot = snapshot
        paths = self._owners.paths(snapshot.gpus)
        held: dict[str, list[Point]] = {}
        with_instances = {gpu.parent for gpu in snapshot.gpus}
        for gpu in snapshot.gpus:
            shares = self._owners.shares(gpu, paths)
            if gpu.uuid not in with_instances:
                for path, memory in shares.by_cgroup.items():
                    held.setdefault(path, []).append((self._owned_by_cgroup(gpu), memory))
            yield self._reading(self._entity(gpu, tick), tick, list(self._points(gpu, shares)))
        self._owners.forget_all_but(held)
        for path, points in held.items():
            if (entity := self._owners.entity(path)) is not None:
                yield self._reading(entity, tick, points)

    def sources(self) -> Iterator[SourceStatus]:
        status = self._snapshot.status
        yield _LATE if self._late else SourceStatus("nvml/driver", status.state, status.reason, status.remedy)
        for gpu in self._snapshot.gpus:
            if gpu.state in ("lost", "reset_required"):
                reason = f"{short_address(gpu.address)} {gpu.state.replace('_', ' ')}"
                yield SourceStatus(
                    f"nvml/{gpu.uuid}", State.FAILED, reason, "see dmesg; nvidia-smi -r resets it"
                )
        for function in sorted(self._snapshot.denied):
            yield SourceStatus(f"nvml/{function}", State.DENIED, "the driver refuses it", _DENIED_REMEDY)
        if self._foreign and self._snapshot.gpus:
            yield _FOREIGN

    def close(self) -> None:
        if self._worker is not None:
            self._worker.close()
            self._worker = None

    def _driver(self) -> Worker | None:
        """The thread that talks to the driver; None as long as no driver is loaded."""
        if self._worker is not None and self._worker.usable:
            return self._worker
        if presence.driver_version(self.roots.proc) is None:
            return None
        config = self.config
        self._worker = Worker(Session(self.roots.proc, self.roots.sys, config.library, config.release_file))
        return self._worker

    def _points(self, gpu: Gpu, shares: Shares) -> Iterator[Point]:
        yield from self._series.points(gpu)
        if gpu.processes is None:
            return
        if not self._foreign and shares.unattributed is not None:
            yield self._unattributed, shares.unattributed
        yield self._unmapped, shares.unmapped
        if self.config.processes:
            for process in gpu.processes:
                if process.memory is not None:
                    attributes = {"process.pid": process.pid}
                    instrument = self._of_process
                    yield instrument.series(instrument.name, attributes=attributes), process.memory

    def _reading(self, entity: Entity, tick: Tick, points: list[Point]) -> Reading:
        row = tuple(series for series, _ in points)
        return Reading(entity, tick.time_ns, self._rows.setdefault(row, row), [value for _, value in points])

    def _owned_by_cgroup(self, gpu: Gpu) -> Series:
        if gpu.uuid not in self._owned:
            name = self._of_cgroup.name
            self._owned[gpu.uuid] = self._of_cgroup.series(name, attributes={"hw.id": gpu.uuid})
        return self._owned[gpu.uuid]

    def _entity(self, gpu: Gpu, tick: Tick) -> Entity:
        """Its counters began with the driver; when they step back, the driver or the GPU began anew."""
        energy, before = gpu.figures.get("energy"), self._energy.get(gpu.uuid)
        known = self._entities.get(gpu.uuid)
        restarted = energy is not None and before is not None and energy < before
        if energy is not None:
            self._energy[gpu.uuid] = energy
        if known is None or restarted:
            attributes = {
                "hw.id": gpu.uuid,
                "hw.name": short_address(gpu.address),
                "hw.model": gpu.name,
                "hw.vendor": "NVIDIA",
            }
            if gpu.parent is not None:
                attributes["hw.parent"] = gpu.parent
            known = Entity("gpu", gpu.uuid, attributes, tick.time_ns if restarted else None)
            self._entities[gpu.uuid] = known
        return known
