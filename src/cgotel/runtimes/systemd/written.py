"""What the journal adds to the bus: kills by earlyoom and systemd-oomd, ends that the bus did not tell."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from cgotel.clock import Timeline
from cgotel.contract import Report, SourceStatus, State
from cgotel.evidence import Evidence, UserspaceOom
from cgotel.runtimes.systemd import oom_daemons
from cgotel.runtimes.systemd.ends import MESSAGE_IDS, WrittenEnds
from cgotel.runtimes.systemd.entries import Entry
from cgotel.runtimes.systemd.journal import Journal
from cgotel.runtimes.systemd.manager import Units

_SETTLE_S = 5.0  # PID 1 tells of an end on the bus and in the journal, in either order
_MOST_WAITING = 4096
_AGAIN_S = 10.0

_MATCHES = (
    ("_PID=1", *(f"MESSAGE_ID={each}" for each in MESSAGE_IDS)),
    *((f"_SYSTEMD_UNIT={unit}", f"_COMM={comm}") for unit, comm in oom_daemons.UNITS.items()),
)


@dataclass(frozen=True, slots=True)
class _Waiting:
    """An end that is reported unless the bus tells of it before ``due`` (seconds, CLOCK_MONOTONIC)."""

    due: float
    invocation: str
    pieces: list[Evidence]
    cursor: str  # where to read on from so that it is met again


class Written:
    """Follows the journal from a cursor. All methods belong to the loop that `start` ran in."""

    def __init__(self, timeline: Timeline, units: Units, on_kill: Callable[[UserspaceOom], None]) -> None:
        self._timeline = timeline
        self._units = units
        self._on_kill = on_kill
        self._ends = WrittenEnds(timeline, units.cgroup_of)
        self._journal = Journal(self._read)
        self._waiting: list[_Waiting] = []
        self._cursor = ""
        self._restart_at: float | None = None

    @property
    def status(self) -> SourceStatus:
        """Whether the journal can be read."""
        return self._journal.status

    @property
    def cursor(self) -> str:
        """How far everything was reported."""
        return self._waiting[0].cursor if self._waiting else self._cursor

    def start(self, cursor: str, since_ns: int | None) -> None:
        """Read from after ``cursor``, else from a time of the wall clock, else from now on."""
        self._cursor = cursor
        self._waiting.clear()
        self._journal.start(_MATCHES, cursor, since_ns)

    def tick(self, report: Report) -> None:
        """Report what the bus did not tell in time; see that the journal is still read."""
        for waiting in self._settled():
            for piece in waiting.pieces:
                report(piece)
        self._keep_reading()

    def close(self) -> None:
        """Stop reading. May be called twice."""
        self._journal.close()

    def _read(self, entry: Entry) -> None:
        before, self._cursor = self._cursor, entry.cursor
        if kill := oom_daemons.read_kill(entry, self._timeline):
            self._on_kill(kill)
        elif (end := self._ends.take(entry)) and len(self._waiting) < _MOST_WAITING:
            self._waiting.append(_Waiting(time.monotonic() + _SETTLE_S, *end, before))

    def _settled(self) -> Iterator[_Waiting]:
        now = time.monotonic()
        untold = [each for each in self._waiting if not self._units.was_told(each.invocation)]
        self._waiting = [each for each in untold if each.due > now]
        yield from (each for each in untold if each.due <= now)

    def _keep_reading(self) -> None:
        """journalctl may be ended by anybody; it goes on where it was."""
        if self._journal.status.state is not State.GONE:
            self._restart_at = None
        elif self._restart_at is None:
            self._restart_at = time.monotonic() + _AGAIN_S
        elif time.monotonic() >= self._restart_at:
            self._journal.close()
            self._journal.start(_MATCHES, self._cursor, None)
