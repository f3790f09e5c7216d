"""What the tallies of a cgroup say, in the words of evidence."""

from __future__ import annotations

from collections.abc import Iterator

from cgotel.evidence import CgroupEmptied, Evidence, MemoryEvents, PidsEvents
from cgotel.watchers.cgroup_events.member import MEMORY, MEMORY_LOCAL, PIDS, PIDS_LOCAL, Member
from cgotel.watchers.cgroup_events.tally import Tally

SOURCE = "cgroup_events"
LAG_NS = 200 * 10**6
"""How long after the fact a heard rise is read at the latest, on a machine that is not overwhelmed.

The kernel holds notices back for 10 ms (CGROUP_FILE_NOTIFY_MIN_INTV), `Member.next_look_ns` for 100.
"""


class Words:
    """Makes evidence; what it makes counts as told.

    ``events_are_local`` and ``pids_of_limit`` say what memory.events and pids.events count here.
    """

    def __init__(self, events_are_local: bool, forks_counted_where_tried: bool) -> None:
        self._events_are_local = events_are_local
        self._forks_counted_where_tried = forks_counted_where_tried

    def rises(self, member: Member, ended: bool = False, final: bool = False) -> Iterator[Evidence]:
        """What rose and was not told; ``ended``: the last process ended, so that nothing is news too."""
        for name, tally in member.tallies.items():
            rose = tally.rose
            if name in (MEMORY, MEMORY_LOCAL):
                if self._events_are_local and name == MEMORY and MEMORY_LOCAL in member.tallies:
                    tally.tell()  # both files say the same
                    continue
                if rose or (ended and name == MEMORY):
                    local = name == MEMORY_LOCAL or self._events_are_local
                    yield MemoryEvents(
                        source=SOURCE,
                        time_ns=tally.seen_ns,
                        uncertainty_ns=_uncertainty_ns(member, tally),
                        cgroup=member.path,
                        rose=rose,
                        since_ns=tally.since_ns if rose else tally.told_ns,
                        local=local,
                        final=final,
                    )
            elif name in (PIDS, PIDS_LOCAL) and "max" in rose:
                if self._forks_counted_where_tried and name == PIDS_LOCAL and PIDS in member.tallies:
                    tally.tell()
                    continue
                of_limit = PIDS_LOCAL in member.tallies and not self._forks_counted_where_tried
                yield PidsEvents(
                    source=SOURCE,
                    time_ns=tally.seen_ns,
                    uncertainty_ns=_uncertainty_ns(member, tally),
                    cgroup=member.path,
                    refused=rose["max"],
                    since_ns=tally.since_ns,
                    of_limit=of_limit,
                    local=of_limit and name == PIDS_LOCAL,
                )
            tally.tell()

    def emptied(self, member: Member) -> CgroupEmptied:
        """Its last process ended."""
        span = member.looked_ns - member.looked_before_ns
        return CgroupEmptied(
            source=SOURCE,
            time_ns=member.looked_ns,
            uncertainty_ns=span if member.watch is None else min(span, LAG_NS),
            cgroup=member.path,
        )

    def removed(self, member: Member, now_ns: int) -> CgroupEmptied:
        """Its directory is gone."""
        span = now_ns - member.looked_ns
        return CgroupEmptied(
            source=SOURCE,
            time_ns=now_ns,
            uncertainty_ns=span if member.watch is None else min(span, LAG_NS),
            cgroup=member.path,
            removed=True,
        )


def _uncertainty_ns(member: Member, tally: Tally) -> int:
    """How long before its stamp a rise may have happened.

    Whoever hears of it looks at once, and tells at once what is urgent. What had to wait came no
    earlier than shortly before the first look that showed it. Who only asks knows nothing but when
    that was done before.
    """
    span = tally.seen_ns - tally.since_ns
    if member.watch is None or not tally.heard or tally.first_ns is None:
        return span
    waited_ns = 0 if tally.urgent else tally.seen_ns - tally.first_ns
    return min(span, waited_ns + LAG_NS)
