"""OOM kills as log events, from the counters alone (memory.events and memory.events.local).

The kernel says here that it killed, and in which cgroup the victim lived; not whose limit was hit,
nor which process it was. So the event claims no more than that.
"""

from __future__ import annotations

from cgotel.collectors.cgroup.derived import Picker
from cgotel.kernel.formats import Columns
from cgotel.model import Entity, Event, Series, Severity

EVENT_NAME = "cgotel.oom.kill"


class OomKills:
    """Notices that oom_kill rose since the sweep before; the first sweep only sets the ground."""

    def __init__(self) -> None:
        self._picker = Picker("memory.events.local.oom_kill")

    def event(
        self, entity: Entity, before: Columns[Series], after: Columns[Series], time_ns: int
    ) -> Event | None:
        """The event of a rise between two reads of an entity's memory.events.local, if it rose."""
        if not before.values:
            return None
        [old], [new] = self._picker(before), self._picker(after)
        if old is None or new is None or new <= old:
            return None
        return _event(entity, int(new - old), int(new), time_ns)


def _event(entity: Entity, kills: int, total: int, time_ns: int) -> Event:
    path = str(entity.attributes["process.linux.cgroup"]).removeprefix("0::")
    processes = "1 process" if kills == 1 else f"{kills} processes"
    return Event(
        name=EVENT_NAME,
        time_ns=time_ns,
        observed_ns=time_ns,
        severity=Severity.ERROR,
        entity=entity,
        body=f"the kernel's OOM killer killed {processes} of {path}",
        uid=f"oom_kill:{entity.key}:{total}",
        attributes={**entity.attributes, "cgotel.oom.kills": kills, "error.type": "oom_kill"},
    )
