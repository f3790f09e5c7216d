"""When a watcher looked last, kept over restarts, so that it can say from when on nobody did."""

from __future__ import annotations

from cgotel.contract import Bookmark, Timeline
from cgotel.evidence import Gap

_EVERY_NS = 10 * 10**9
EVERY_S = 10.0
"""How often `Attendance.note` wants to be called at least: a crash is taken for so much earlier."""


class Attendance:
    """For a source that keeps nothing: what happened while nobody looked cannot be learnt any more."""

    def __init__(self, source: str, timeline: Timeline, bookmark: Bookmark) -> None:
        self._source = source
        self._timeline = timeline
        self._bookmark = bookmark
        self._noted_ns = 0

    def absence(self, until_ns: int) -> Gap:
        """Nobody looked since the last note, or since the machine was started."""
        content = self._bookmark.read() or b""
        last_ns = int(content) if content.isdigit() and len(content) < 20 else until_ns
        since_ns = last_ns if last_ns < until_ns else self._timeline.from_boottime(0)
        reason = "it was not watched: the agent, or this watcher, was not running"
        return Gap(source=self._source, time_ns=until_ns, since_ns=since_ns, reason=reason)

    def note(self, last: bool = False) -> None:
        """Somebody looks now, and will go on, except where it is the ``last`` time."""
        now = self._timeline.now()
        if last or now >= self._noted_ns + _EVERY_NS:
            self._noted_ns = now
            self._bookmark.write(b"%d" % now)
