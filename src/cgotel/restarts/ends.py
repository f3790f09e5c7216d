"""Where and when things ended a moment ago, by cgroup: so that one end is not told for its parents too."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from cgotel.restarts.shelf import lineage

_MOST = 16_384


class _End(NamedTuple):
    time_ns: int
    reach_ns: int
    id: str


class Ends:
    """The last ends, found by a cgroup that they were in, at or around."""

    def __init__(self) -> None:
        self._all: deque[str] = deque()
        self._at: dict[str, deque[_End]] = {}
        self._within: dict[str, deque[_End]] = {}

    def note(self, cgroup: str, time_ns: int, reach_ns: int, workload_id: str) -> None:
        """A workload of a cgroup ended; what empties nearer to that than ``reach_ns`` belongs to it."""
        end = _End(time_ns, reach_ns, workload_id)
        self._all.append(cgroup)
        self._at.setdefault(cgroup, deque()).append(end)
        for path in lineage(cgroup):
            self._within.setdefault(path, deque()).append(end)
        if len(self._all) > _MOST:
            self._forget_oldest()

    def cover(self, cgroup: str, time_ns: int) -> bool:
        """Whether another workload that lived in, below or around a cgroup ended at such a time."""
        places = [self._within.get(cgroup, ()), *(self._at.get(path, ()) for path in lineage(cgroup))]
        return any(
            end.id != cgroup and abs(end.time_ns - time_ns) < end.reach_ns
            for ends in places
            for end in reversed(ends)
        )

    def _forget_oldest(self) -> None:
        cgroup = self._all.popleft()
        _drop_first(self._at, cgroup)
        for path in lineage(cgroup):
            _drop_first(self._within, path)


def _drop_first(ends: dict[str, deque[_End]], path: str) -> None:
    ends[path].popleft()
    if not ends[path]:
        del ends[path]
