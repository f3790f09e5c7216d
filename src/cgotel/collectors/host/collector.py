"""The host collector: memory, swap, NUMA nodes, zram devices, processes; one reading a sweep."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Protocol

import msgspec

from cgotel.collectors.files import Beat, Files, Row
from cgotel.collectors.host import fragmentation, memory, vmstat
from cgotel.collectors.host.numa import NO_NODES, NodeTables
from cgotel.collectors.host.tasks import Tasks
from cgotel.collectors.host.zram import NO_DEVICES, Zram, ZramTables
from cgotel.collectors.instruments import Instruments
from cgotel.collectors.tables import FileTable
from cgotel.contract import Collector, CollectorSettings, SourceStatus, State, Tick, Unavailable
from cgotel.identity.host import host_entity
from cgotel.kernel import topology, zram
from cgotel.kernel.files import Descriptors
from cgotel.kernel.formats import Columns
from cgotel.kernel.roots import Roots
from cgotel.model import Entity, Reading, Series

_KEPT_OPEN = 32


class HostConfig(CollectorSettings, frozen=True):
    """``[collectors.host]``: what of the host is reported beyond what everybody needs."""

    vm_events: tuple[str, ...] = ()
    """Further keys of /proc/vmstat that count events (thp_fault_fallback, pgscan_direct, ...)."""
    free_blocks: bool = False
    """Also how many free blocks each zone has of each size: about a dozen series a zone."""
    fragmentation_order: Annotated[int, msgspec.Meta(ge=0, le=63)] = 9
    """Blocks of 2**order pages are the ones to be had; 9: 2 MiB in pages of 4 KiB."""

    def __post_init__(self) -> None:
        for event in self.vm_events:
            if reason := vmstat.refusal(event):
                raise ValueError(f"vm_events: {event!r} {reason}")


class Part(Protocol):
    """Something of the host that is read: a directory's files, or a device's."""

    def read(self) -> list[Columns[Series]]: ...
    def retry(self) -> None: ...
    def statuses(self) -> Iterator[SourceStatus]: ...
    def close(self) -> None: ...


class HostCollector(Collector):
    """The figures of the machine that all its cgroups share."""

    name = "host"
    Config = HostConfig
    needs = ("/proc and /sys, readable as any user",)

    config: HostConfig

    def __init__(self, config: HostConfig, roots: Roots) -> None:
        super().__init__(config, roots)
        self._make = Instruments()
        self._events = vmstat.event_series(self._make, config.vm_events)
        self._tasks = Tasks(self._make)
        self._tables = [
            *memory.tables(self._make),
            vmstat.table(self._make, self._events),
            *self._tasks.tables,
            fragmentation.table(self._make, config.fragmentation_order, config.free_blocks),
        ]
        self._nodes = NodeTables(self._make)
        self._zram = ZramTables(self._make)
        self.instruments = tuple(self._make.instruments.values())
        self._entity = Entity("host", "")
        self._row = Row()
        self._descriptors = Descriptors(_KEPT_OPEN)
        self._proc: Files | None = None
        self._parts: dict[str, Part] = {}
        self._beat = Beat()

    def start(self) -> None:
        self._proc = Files(self.roots.proc, self._tables, self._descriptors, memory.SILENCES)
        self._proc.read()
        states = [status.state for status in self._proc.statuses()]
        if State.OK not in states:
            self.close()
            remedy = "mount /proc, or set HOST_PROC to where the host's is mounted"
            reason = f"nothing can be read below {self.roots.proc}"
            raise Unavailable(SourceStatus(self.name, states[0], reason, remedy))
        self._entity = host_entity(self.roots)

    def collect(self, tick: Tick) -> Iterator[Reading]:
        assert self._proc is not None, "collect() before start()"
        if self._beat.due(tick):
            self._look(self._proc)
        columns = self._proc.read()
        columns.append(self._tasks.ended(columns))
        for part in self._parts.values():
            columns += part.read()
        values = self._row.join(columns)
        yield Reading(self._entity, tick.time_ns, self._row.series, values)

    def _look(self, proc: Files) -> None:
        """Find nodes and devices that came and went; ask again for what was silent."""
        proc.retry()
        for part in self._parts.values():
            part.retry()
        nodes = {f"node{node}": node for node in topology.numa_nodes(self.roots.sys)}
        devices = zram.devices(self.roots.sys)
        for name in self._parts.keys() - nodes.keys() - set(devices):
            self._parts.pop(name).close()
        for name, node in nodes.items():
            if name not in self._parts:
                self._parts[name] = self._node(name, self._nodes.of(node))
        for name in devices:
            if name not in self._parts:
                tables = self._zram.of(name)
                self._parts[name] = Zram(self.roots.sys, name, tables, self._descriptors)

    def _node(self, name: str, tables: list[FileTable]) -> Files:
        directory = f"{self.roots.sys}/devices/system/node/{name}"
        return Files(directory, tables, self._descriptors, {}, f"{name}/")

    def sources(self) -> Iterator[SourceStatus]:
        if self._proc is None:
            return
        yield from self._proc.statuses()
        reported = self._proc.last("vmstat").wanted
        for series in self._events.values():
            if series not in reported:
                yield vmstat.UNKNOWN.status(series.source)
        for part in self._parts.values():
            yield from part.statuses()
        for kind, silence in (("node", NO_NODES), ("zram", NO_DEVICES)):
            if not any(name.startswith(kind) for name in self._parts):
                yield silence.status(kind)

    def close(self) -> None:
        for part in (self._proc, *self._parts.values()):
            if part is not None:
                part.close()
        self._proc = None
        self._parts.clear()
        self._beat = Beat()
