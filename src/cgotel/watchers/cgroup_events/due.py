"""Which cgroups are to be looked at later, and when."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator

from cgotel.watchers.cgroup_events.member import Member


class Due:
    """A queue of members by time; each stands in it for its earliest time only."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Member]] = []
        self._order = itertools.count()

    def add(self, member: Member, due_ns: int) -> None:
        """Look at it then, if not earlier."""
        if member.due_ns is None or due_ns < member.due_ns:
            member.due_ns = due_ns
            heapq.heappush(self._heap, (due_ns, next(self._order), member))

    @property
    def next_ns(self) -> int | None:
        """When the next one is due."""
        return self._heap[0][0] if self._heap else None

    def pop(self, now_ns: int) -> Iterator[Member]:
        """Those whose time has come, and that are there still."""
        while self._heap and self._heap[0][0] <= now_ns:
            due_ns, _, member = heapq.heappop(self._heap)
            if member.due_ns == due_ns and not member.gone:
                member.due_ns = None
                yield member
