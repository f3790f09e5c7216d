"""Several daemons of a kind, watched at the same time: one that is silent keeps no other waiting."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Protocol

from cgotel.contract import Report, SourceStatus, State, Stop, Unavailable

log = logging.getLogger(__name__)

_FIRST_RETRY_S = 1.0
_LAST_RETRY_S = 60.0


class Daemon(Protocol):
    """One daemon: `watch` connects, reports until stopped, and raises `Unavailable` when it is lost."""

    path: str

    def open(self) -> None:
        """Connect. Raises `Unavailable`."""

    def watch(self, report: Report, stop: Stop) -> None:
        """Report until ``stop``."""

    def close(self) -> None:
        """Disconnect. May be called twice."""


class Several:
    """Opens and watches daemons, each on its own once there are more than one."""

    def __init__(self, daemons: Sequence[Daemon]) -> None:
        self._daemons = daemons
        self._statuses: dict[str, SourceStatus] = {}

    def open(self) -> None:
        """Connect to each. Raises the first one's `Unavailable` where none answers."""
        if len(self._daemons) == 1:
            self._daemons[0].open()
            return
        failed = [failure for daemon in self._daemons if (failure := self._try(daemon.open, daemon))]
        if len(failed) == len(self._daemons):
            raise failed[0]

    def watch(self, report: Report, stop: Stop) -> None:
        """Watch until stopped; the only one's `Unavailable` is raised, one of several is tried again."""
        if len(self._daemons) == 1:
            self._daemons[0].watch(report, stop)
            return
        threads = [
            threading.Thread(target=self._serve, args=(daemon, report, stop), daemon=True)
            for daemon in self._daemons
        ]
        for thread in threads:
            thread.start()
        stop.wait()
        for thread in threads:
            thread.join()

    def sources(self) -> Iterator[SourceStatus]:
        """The state of each, where there are several."""
        if len(self._daemons) > 1:
            yield from self._statuses.values()

    def close(self) -> None:
        """Disconnect from all."""
        for daemon in self._daemons:
            daemon.close()

    def _serve(self, daemon: Daemon, report: Report, stop: Stop) -> None:
        pause_s = _FIRST_RETRY_S
        status = self._statuses.get(daemon.path)
        opened = status is not None and status.state is State.OK
        while not stop.is_set():
            if opened or self._try(daemon.open, daemon) is None:
                pause_s = _FIRST_RETRY_S
                self._try(lambda: daemon.watch(report, stop), daemon)
            daemon.close()
            opened = False
            stop.wait(pause_s)
            pause_s = min(2 * pause_s, _LAST_RETRY_S)

    def _try(self, act: Callable[[], None], daemon: Daemon) -> Unavailable | None:
        """Do it, and keep the state that it leads to."""
        failure = None
        try:
            act()
        except Unavailable as unavailable:
            failure = unavailable
        except Exception as error:  # it must not end the others
            log.exception("%s", daemon.path)
            reason = f"{type(error).__name__}: {error}"
            failure = Unavailable(SourceStatus(daemon.path, State.FAILED, reason))
        ok = SourceStatus(daemon.path, State.OK)
        self._statuses[daemon.path] = replace(failure.status, name=daemon.path) if failure else ok
        return failure
