"""OOM kills as log events, from the counters alone (memory.events and memory.events.local).

The kernel says here that it killed, and in which cgroup the victim lived; not whose limit was hit,
nor which process it was. So the event claims no more than that.
"""

from __future__ import annotations

from cgotel.collectors.cgroup.member import Member
from cgotel.model import Entity, Event, Severity

EVENT_NAME = "cgotel.oom.kill"


def oom_kills(member: Member, time_ns: int) -> Event | None:
    """The event of a rise of oom_kill between the last two reads; the first one only sets the ground."""
    before, now = member.oom_kills, member.use.oom_kills
    member.oom_kills = now
    if before is None or now is None or now <= before:
        return None
    return _event(member.entity, int(now - before), int(now), time_ns)


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
