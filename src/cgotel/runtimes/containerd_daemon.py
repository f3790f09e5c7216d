"""One containerd, watched from its subscription to its loss, and what is remembered in between."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import msgspec

from cgotel.clock import now
from cgotel.contract import Report, Roots, Stop, Timeline
from cgotel.evidence import Gap
from cgotel.runtimes import claims, containerd_names
from cgotel.runtimes.containerd_client import Container, Containerd
from cgotel.runtimes.containerd_runs import SOURCE, Run, Runs
from cgotel.runtimes.grpc_socket import CallFailed, GrpcSocket, Stream
from cgotel.runtimes.kept import Shelf
from cgotel.runtimes.shims import Shims

log = logging.getLogger(__name__)

_REMEDY = (
    "start containerd, run cgotel as root, or name its socket in [watchers.containerd] sockets "
    '(k3s: "/run/k3s/containerd/containerd.sock")'
)
_SETTLE_NS = 10**9  # a subscription is in force by then
_DRAIN_S = 0.2
_KEEP_NS = 10**9
_QUIET_NS = 30 * 10**9
_NEVER = 1 << 63


class _Kept(msgspec.Struct, frozen=True):
    """Until when one containerd was watched (wall time), and what ran then."""

    seen_ns: int
    runs: list[tuple[str, str, Run]]


class Daemon:
    """The containerd at one socket."""

    def __init__(self, path: str, roots: Roots, timeline: Timeline, shelf: Shelf) -> None:
        self.path = path
        self._containerd = Containerd(GrpcSocket(path, SOURCE, _REMEDY))
        self._roots = roots
        self._timeline = timeline
        self._shelf = shelf

    def open(self) -> None:
        """Connect. Raises `Unavailable`."""
        self._containerd.open()

    def watch(self, report: Report, stop: Stop) -> None:
        """Report until ``stop``. Raises `Unavailable` when containerd is lost."""
        shims = Shims(self._roots, self._timeline)
        runs = Runs(report, self._timeline, self._roots, shims, self._look, self._owner)
        kept = self._shelf.read(self.path, _Kept)
        following = _Following(
            self._containerd, runs, shims, report, self._timeline, kept.seen_ns if kept else self._wall()
        )
        if kept is not None:
            runs.remember({(namespace, name): run for namespace, name, run in kept.runs})
            following.tell_gap(kept.seen_ns, "cgotel was not connected to containerd")
        try:
            following.follow(stop, lambda: self._keep(runs))
        except CallFailed as failed:
            raise self._containerd.lost(failed) from None
        finally:
            following.close()
            shims.close()
            self._keep(runs)

    def close(self) -> None:
        """Disconnect. May be called twice."""
        self._containerd.close()

    def _look(self, namespace: str, container_id: str) -> Container | None:
        try:
            return self._containerd.container(namespace, container_id)
        except CallFailed as failed:
            log.debug("containerd did not tell of %s in %s: %s", container_id, namespace, failed)
            return None

    def _owner(self, namespace: str) -> str | None:
        if namespace == containerd_names.DOCKER:
            return "docker"
        return "cri" if namespace == containerd_names.KUBERNETES and claims.claimed(self.path) else None

    def _keep(self, runs: Runs) -> None:
        seen_ns = self._timeline.to_wall(self._timeline.now())
        self._shelf.write(self.path, _Kept(seen_ns, [(*place, run) for place, run in runs.running.items()]))

    def _wall(self) -> int:
        return self._timeline.to_wall(self._timeline.now())


class _Following:
    """One subscription: events as they come, and lists of tasks for what no event told.

    containerd does not say when a subscription is in force: the list at the beginning may be older than
    it, so there is a second one a little later.
    """

    def __init__(
        self,
        containerd: Containerd,
        runs: Runs,
        shims: Shims,
        report: Report,
        timeline: Timeline,
        seen_ns: int,
    ) -> None:
        self._containerd = containerd
        self._runs = runs
        self._shims = shims
        self._report = report
        self._timeline = timeline
        self._seen_ns = seen_ns
        self._stream: Stream | None = None

    def follow(self, stop: Stop, keep: Callable[[], None]) -> None:
        """Report until ``stop``, and ``keep`` what runs now and then. Raises `CallFailed`."""
        stream = self._stream = self._containerd.subscribe()
        self._shims.join(stream.fileno())
        self._runs.compare(list(self._containerd.tasks()), self._seen_ns)
        begun = now().monotonic_ns
        compare_at, keep_at, ask_at = begun + _SETTLE_NS, begun, begun + _QUIET_NS
        while not stop.is_set():
            time = now().monotonic_ns
            events = self._wait(stream, stop, max(0, min(compare_at, keep_at, ask_at) - time) / 1e9)
            self._take(events)
            time = now().monotonic_ns
            if events:
                keep_at, ask_at = min(keep_at, time + _KEEP_NS), time + _QUIET_NS
            if dropped := stream.dropped():
                self.tell_gap(self._wall(), f"{dropped} events came faster than they were taken")
                compare_at = time
            if time >= compare_at:
                self._compare(stream, stop)
                compare_at = _NEVER
            if time >= ask_at:
                self._containerd.version()
                ask_at = time + _QUIET_NS
            if time >= keep_at:
                keep()
                keep_at = time + _QUIET_NS

    def tell_gap(self, since_ns: int, reason: str) -> None:
        """From a wall time on nothing was seen."""
        time_ns = self._timeline.now()
        since_ns = min(self._timeline.from_wall(since_ns), time_ns)
        self._report(Gap(source=SOURCE, time_ns=time_ns, since_ns=since_ns, reason=reason))

    def close(self) -> None:
        """Unsubscribe."""
        if self._stream is not None:
            self._stream.close()

    def _compare(self, stream: Stream, stop: Stop) -> None:
        """What ran before the list was made, is not in it, and did not end by an event either, is gone."""
        before = dict(self._runs.running)
        tasks = list(self._containerd.tasks())
        stop.wait(_DRAIN_S)
        self._take(self._wait(stream, stop, 0))
        self._runs.compare(tasks, self._seen_ns, before)

    def _wait(self, stream: Stream, stop: Stop, timeout_s: float) -> list[bytes]:
        stop.wait_for(self._shims.fileno(), timeout_s)
        self._shims.look()
        return stream.take()

    def _take(self, events: Sequence[bytes]) -> None:
        for event in events:
            try:
                happening = self._containerd.happening(event)
            except CallFailed as failed:
                self.tell_gap(self._wall(), str(failed))
            else:
                if happening is not None:
                    self._runs.take(happening)

    def _wall(self) -> int:
        return self._timeline.to_wall(self._timeline.now())
