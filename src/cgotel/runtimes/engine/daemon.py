"""One daemon behind one socket: who it is, what is known of its containers, why it cannot serve."""

from __future__ import annotations

import errno
import os
from contextlib import suppress

from cgotel.contract import Report, Roots, SourceStatus, State, Stop, Timeline, Unavailable
from cgotel.kernel.source import state_of
from cgotel.runtimes.engine import cgroups, messages
from cgotel.runtimes.engine.client import FAULTS, Client, Stopped
from cgotel.runtimes.engine.dialect import Dialect
from cgotel.runtimes.engine.follower import Follower
from cgotel.runtimes.engine.marks import Marks
from cgotel.runtimes.engine.messages import About, Container
from cgotel.runtimes.engine.watch import Watch

_PATIENCE_S = 30.0  # Podman asks its helpers for their versions before it tells its own


class Daemon:
    """Watched over losses of the connection; what it knows of containers outlasts them."""

    def __init__(
        self, path: str, dialect: Dialect, roots: Roots, timeline: Timeline, marks: Marks, keep_words: bool
    ) -> None:
        self.path = path
        self._dialect = dialect
        self._roots = roots
        self._timeline = timeline
        self._marks = marks
        self._keep_words = keep_words
        self._about = About(podman=dialect.runtime == "podman", systemd=True, rootless=False)
        self._follower: Follower | None = None

    def open(self) -> None:
        """See who is there. Raises `Unavailable`."""
        client = Client(self.path, Stop())
        try:
            version, info = client.get("/version", _PATIENCE_S), client.get("/info", _PATIENCE_S)
            self._about = messages.about(version, info)
        except FAULTS as fault:
            raise self._unavailable(fault) from fault
        if self._about.podman != (self._dialect.runtime == "podman"):
            other = "Podman" if self._about.podman else "Docker"
            reason = f"{self.path} leads to {other}"
            raise Unavailable(
                SourceStatus(self.path, State.OFF, reason, f"watcher {other.lower()} serves it")
            )

    def watch(self, report: Report, stop: Stop) -> None:
        """Report until ``stop``. Raises `Unavailable` when the daemon is lost."""
        mark = self._marks.get(self.path)
        if self._follower is None:
            since = mark.alive if mark else self._timeline.to_wall(self._timeline.now())
            self._follower = Follower(self._dialect.runtime, self._place, self._timeline, since)
        try:
            Watch(
                Client(self.path, stop),
                self._follower,
                mark,
                lambda mark: self._marks.keep(self.path, mark),
                report,
                self._timeline,
                self._dialect.runtime,
                self._keep_words,
            ).run(stop)
        except Stopped:
            return
        except FAULTS as fault:
            raise self._unavailable(fault) from fault

    def close(self) -> None:
        """Nothing stays open between two lives."""

    def _place(self, container: str, seen: Container | None) -> tuple[int | None, str | None]:
        pid, path = None, None
        if seen is not None and seen.pid is not None:
            pid, path = cgroups.of_process(seen.pid, container, self._roots)
        if path is None:
            parent = seen.cgroup_parent if seen else ""
            path = cgroups.by_shape(container, parent, self._dialect, self._about, self._owner())
        return pid, path

    def _owner(self) -> int:
        """Whose daemon it is; of interest where it is rootless."""
        with suppress(OSError):
            return os.stat(self.path).st_uid
        return 0

    def _unavailable(self, fault: BaseException) -> Unavailable:
        state, remedy = State.FAILED, ""
        reason = f"{self.path}: {fault}"
        number = fault.errno if isinstance(fault, OSError) else None
        if number:
            state = state_of(fault) if isinstance(fault, OSError) else state
            reason = f"{self.path}: {os.strerror(number)}"
        if number in (errno.EACCES, errno.EPERM):
            group = f", or as a member of group {self._dialect.group}" if self._dialect.group else ""
            remedy = f"run the agent as root{group}: whoever may use this socket is root on the host"
        elif number in (errno.ENOENT, errno.ECONNREFUSED):
            state = State.ABSENT
            remedy = f"start {self._dialect.title}, or name its socket in [watchers.{self._dialect.runtime}]"
        return Unavailable(SourceStatus(self.path, state, reason, remedy))
