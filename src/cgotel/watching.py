"""Runs watchers, each in a thread of its own and on its own risk."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

from cgotel.clock import now
from cgotel.contract import Report, SourceStatus, State, Stop, Unavailable, Watcher
from cgotel.faults import Faults

log = logging.getLogger(__name__)

_FIRST_RETRY_S = 1.0
_LAST_RETRY_S = 60.0
_STEADY_NS = 60 * 10**9  # a watcher that lasted so long is tried again soon


class Watching:
    """All watchers at work. One that fails is told once, counted, and started again with back-off."""

    def __init__(self, watchers: Sequence[Watcher], report: Report) -> None:
        self._stop = Stop()
        self._posts = [_Post(watcher, report, self._stop) for watcher in watchers]

    def start(self, timeout_s: float = 2.0) -> None:
        """Start every watcher, and wait a little for all to say whether they can serve."""
        for post in self._posts:
            post.thread.start()
        deadline = time.monotonic() + timeout_s
        for post in self._posts:
            post.answered.wait(max(0.0, deadline - time.monotonic()))

    def sources(self) -> Iterator[SourceStatus]:
        """The state of every watcher, and of its parts."""
        for post in self._posts:
            yield post.status
            if post.status.state is State.OK:
                yield from post.parts()

    @property
    def faults(self) -> dict[str, int]:
        """How often each watcher failed in a way that nobody foresaw."""
        return {post.watcher.name: post.faults.count for post in self._posts}

    def close(self, timeout_s: float = 2.0) -> None:
        """Ask every watcher to end, and wait a little for all."""
        self._stop.set()
        deadline = time.monotonic() + timeout_s
        for post in self._posts:
            if post.thread.is_alive():
                post.thread.join(max(0.0, deadline - time.monotonic()))
            if post.thread.is_alive():
                log.warning("watcher %s did not end within %g s", post.watcher.name, timeout_s)


class _Post:
    """One watcher, its thread, and how it fares."""

    def __init__(self, watcher: Watcher, report: Report, stop: Stop) -> None:
        self.watcher = watcher
        self.status = SourceStatus(watcher.name, State.OFF, "not started")
        self.faults = Faults(f"watcher {watcher.name}")
        self.answered = threading.Event()
        self.thread = threading.Thread(target=self._run, name=f"cgotel-{watcher.name}", daemon=True)
        self._report = report
        self._stop = stop

    def parts(self) -> list[SourceStatus]:
        try:
            return [_sound(part) for part in self.watcher.sources()]
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a plugin may raise anything
            self.faults.note(error)
            return []

    def _run(self) -> None:
        pause_s = _FIRST_RETRY_S
        while not self._stop.is_set():
            began_ns = now().monotonic_ns
            self._serve()
            if now().monotonic_ns - began_ns > _STEADY_NS:
                pause_s = _FIRST_RETRY_S
            self._stop.wait(pause_s)
            pause_s = min(2 * pause_s, _LAST_RETRY_S)

    def _serve(self) -> None:
        """One life of the watcher, from its start to its close."""
        try:
            self._work()
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a plugin may raise anything
            self._fail(error)
        finally:
            try:
                self.watcher.close()
            except (Exception, SystemExit) as error:  # noqa: BLE001
                self.faults.note(error)

    def _work(self) -> None:
        try:
            self.watcher.start()
            self._turn(SourceStatus(self.watcher.name, State.OK))
            self.watcher.watch(self._report, self._stop)
        except Unavailable as unavailable:
            self._turn(replace(_sound(unavailable.status), name=self.watcher.name))

    def _fail(self, error: BaseException) -> None:
        self.faults.note(error)
        self._turn(SourceStatus(self.watcher.name, State.FAILED, f"{type(error).__name__}: {error}"))

    def _turn(self, status: SourceStatus) -> None:
        if status != self.status:
            told = f"{status.reason}; {status.remedy}" if status.remedy else status.reason
            if status.state is State.OK:
                log.debug("watcher %s is at work", status.name)
            elif status.state is not State.FAILED:  # what is not on this host is no news
                level = logging.DEBUG if status.state in (State.ABSENT, State.OFF) else logging.INFO
                log.log(level, "watcher %s: %s: %s", status.name, status.state, told)
        self.status = status
        self.answered.set()


def _sound(status: SourceStatus) -> SourceStatus:
    """Raises `TypeError` where a plugin gave something else."""
    if not isinstance(status, SourceStatus) or not isinstance(status.state, State):
        raise TypeError(f"not the state of a source: {status!r}")
    return status
