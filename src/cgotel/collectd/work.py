"""What is done beside collectd's own threads: sweeps, and the inquiry into what ended."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from cgotel.assemble import Assembly
from cgotel.clock import now
from cgotel.collectd.own import OwnValues
from cgotel.investigation import Investigation
from cgotel.model import Event
from cgotel.outputs.collectd import Entry, Mapper
from cgotel.sweeper import Sweeper

PLUGIN = "cgotel"


class Swept(NamedTuple):
    """One sweep, ready to be dispatched; ``time_s`` is the same Unix time for all of it, in seconds."""

    time_s: float
    entries: list[Entry]


class Work:
    """Sweeps when asked; what is noticed in the meantime waits in the outbox for the next read."""

    def __init__(self, assembly: Assembly, mapper: Mapper) -> None:
        self._sweeper = Sweeper(assembly.collectors(), assembly.configuration.agent.max_series)
        self._mapper = mapper
        self._own = OwnValues()
        self._investigation = Investigation(assembly, "collectd", [PLUGIN])
        self.outbox = self._investigation.outbox
        self._inquiry = self._investigation.begin(self.outbox.add)

    def sweep(self) -> Swept:
        """One sweep, its values as collectd takes them; its events are put with those that wait."""
        sweep = self._sweeper.sweep(now())
        readings = [*sweep.readings, self._own.reading(self._sweeper, sweep)]
        if self._inquiry is not None:
            self._inquiry.see(sweep)
            readings += self._inquiry.readings(sweep.time_ns)
        self._keep(self._sweeper.events())
        return Swept(sweep.time_ns / 1e9, self._mapper.entries(readings))

    def close(self) -> None:
        """End the inquiry and let go of files."""
        if self._inquiry is not None:
            self._inquiry.close(0.2)
        self._sweeper.close()
        self._investigation.close()

    def _keep(self, events: Iterable[Event]) -> None:
        for event in events:
            if self._inquiry is None or not self._inquiry.tells_better(event):
                self.outbox.add(event)
