"""Pressure on the host as a whole: /proc/pressure/cpu, memory, io and irq (accounting/psi.rst)."""

from __future__ import annotations

from collections.abc import Iterator

from cgotel.collectors import psi
from cgotel.collectors.files import Beat, Files, Row, Silence
from cgotel.collectors.instruments import Instruments, linux
from cgotel.contract import Collector, CollectorSettings, SourceStatus, State, Tick, Unavailable
from cgotel.hookspecs import hookimpl
from cgotel.identity.host import host_entity
from cgotel.kernel.files import Descriptors
from cgotel.kernel.roots import Roots
from cgotel.model import Entity, Reading

_NO_PSI = Silence("this kernel has no PSI, or it is off", "boot with psi=1, a kernel with CONFIG_PSI")
_SILENCES = {
    **{f"pressure/{resource}": _NO_PSI for resource in psi.RESOURCES},
    "pressure/irq": Silence(
        "needs Linux 6.1 with IRQ time accounting", "a kernel with CONFIG_IRQ_TIME_ACCOUNTING"
    ),
}


class PressureConfig(CollectorSettings, frozen=True):
    """``[collectors.pressure]``."""

    averages: bool = False
    """Also the kernel's running averages, which can be derived from the totals."""


class PressureCollector(Collector):
    """How long tasks of the host waited for CPU, memory and io; the cgroups' own is `cgroup`'s."""

    name = "pressure"
    Config = PressureConfig
    needs = ("/proc/pressure, readable as any user",)

    config: PressureConfig

    def __init__(self, config: PressureConfig, roots: Roots) -> None:
        super().__init__(config, roots)
        make = Instruments()
        name = linux("{}", "pressure")
        self._tables = psi.tables(make, "pressure/{}", name, config.averages, machine=True)
        self.instruments = tuple(make.instruments.values())
        self._descriptors = Descriptors(len(self._tables))
        self._beat = Beat()
        self._row = Row()
        self._entity = Entity("host", "")
        self._files: Files | None = None

    def start(self) -> None:
        files = Files(self.roots.proc, self._tables, self._descriptors, _SILENCES)
        files.read()
        states = list(files.statuses())
        if not any(status.state is State.OK for status in states):
            files.close()
            first = states[0]
            raise Unavailable(SourceStatus(self.name, first.state, first.reason, first.remedy))
        self._files = files
        self._entity = host_entity(self.roots)

    def collect(self, tick: Tick) -> Iterator[Reading]:
        assert self._files is not None, "collect() before start()"
        if self._beat.due(tick):
            self._files.retry()
        values = self._row.join(self._files.read())
        yield Reading(self._entity, tick.time_ns, self._row.series, values)

    def sources(self) -> Iterator[SourceStatus]:
        if self._files is not None:
            yield from self._files.statuses()

    def close(self) -> None:
        if self._files is not None:
            self._files.close()
            self._files = None


@hookimpl
def cgotel_collectors() -> list[type[PressureCollector]]:
    return [PressureCollector]
