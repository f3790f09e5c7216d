"""One runtime that speaks the CRI, watched from its first list to its loss."""

from __future__ import annotations

import msgspec

from cgotel.contract import Report, Roots, Stop, Timeline
from cgotel.evidence import Gap
from cgotel.runtimes import claims
from cgotel.runtimes.cri_client import Cri
from cgotel.runtimes.cri_runs import SOURCE, Run, Runs
from cgotel.runtimes.grpc_socket import CallFailed, GrpcSocket, Stream
from cgotel.runtimes.kept import Shelf

_REMEDY = "name the runtime's socket in [watchers.cri] sockets, and run cgotel as root"
_WITH_EVENTS_S = 30.0
_KEEP_NS = 30 * 10**9
_BREATH_S = 0.1
_SETTLE_S = 2.0


class _Kept(msgspec.Struct, frozen=True):
    """Until when one runtime was watched (wall time), and what ran then."""

    seen_ns: int
    runs: dict[str, Run]


class Daemon:
    """The runtime at one socket. ``interval_s``: how often it is asked where it tells nothing by itself."""

    def __init__(self, path: str, interval_s: float, roots: Roots, timeline: Timeline, shelf: Shelf) -> None:
        self.path = path
        self._interval_s = interval_s
        self._cri = Cri(GrpcSocket(path, SOURCE, _REMEDY))
        self._roots = roots
        self._timeline = timeline
        self._shelf = shelf

    def open(self) -> None:
        """Connect. Raises `Unavailable`."""
        self._cri.open()
        claims.claim(self.path)

    def watch(self, report: Report, stop: Stop) -> None:
        """Report until ``stop``. Raises `Unavailable` when the runtime is lost."""
        runs = Runs(report, self._timeline, self._roots, self._cri.status)
        kept = self._shelf.read(self.path, _Kept)
        if kept is not None:
            runs.remember(kept.runs)
            self._tell_gap(report, kept.seen_ns)
        try:
            self._follow(runs, kept.seen_ns if kept else self._wall(), stop)
        except CallFailed as failed:
            raise self._cri.lost(failed) from None

    def close(self) -> None:
        """Disconnect. May be called twice."""
        claims.release(self.path)
        self._cri.close()

    def _follow(self, runs: Runs, seen_ns: int, stop: Stop) -> None:
        events = self._cri.events()
        kept = _Kept(0, {})
        try:
            while not stop.is_set():
                now_ns = self._wall()
                runs.compare(self._cri.containers(), seen_ns)
                seen_ns = now_ns
                if now_ns - kept.seen_ns > _KEEP_NS or runs.running != kept.runs:
                    kept = self._keep(runs, seen_ns)
                events = self._wait(events, runs, stop)
        finally:
            self._keep(runs, seen_ns)
            if events is not None:
                events.close()

    def _keep(self, runs: Runs, seen_ns: int) -> _Kept:
        kept = _Kept(seen_ns, dict(runs.running))
        self._shelf.write(self.path, kept)
        return kept

    def _wait(self, events: Stream | None, runs: Runs, stop: Stop) -> Stream | None:
        """Wait for the next look; what comes in the same breath is looked at together."""
        timeout_s = self._interval_s if events is None else _WITH_EVENTS_S
        if runs.unsettled:
            timeout_s = min(timeout_s, _SETTLE_S)
        if events is None:
            stop.wait(timeout_s)
        elif stop.wait_for(events.fileno(), timeout_s):
            stop.wait(_BREATH_S)
            events = self._heard(events)
        if not stop.is_set():
            runs.settle()
        return events

    def _heard(self, events: Stream) -> Stream | None:
        """Whether there is more to come; a runtime that serves no events is asked instead."""
        try:
            events.take()
        except CallFailed as failed:
            if failed.code == "UNAVAILABLE":
                raise
            events.close()
            return None
        return events

    def _tell_gap(self, report: Report, seen_ns: int) -> None:
        time_ns = self._timeline.now()
        since_ns = min(self._timeline.from_wall(seen_ns), time_ns)
        report(Gap(source=SOURCE, time_ns=time_ns, since_ns=since_ns, reason="cgotel was not connected"))

    def _wall(self) -> int:
        return self._timeline.to_wall(self._timeline.now())
