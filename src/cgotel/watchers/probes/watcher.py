"""Probes of our own: what a runtime does not ask a workload, or only tells of when it is too late."""

from __future__ import annotations

import contextlib
import os
import queue
import time
import weakref
from collections.abc import Callable, Iterator
from functools import partial

from cgotel.contract import (
    Report,
    SourceStatus,
    State,
    Stop,
    Unavailable,
    Watcher,
)
from cgotel.evidence import Workload
from cgotel.watchers.probes.attempt import Attempt
from cgotel.watchers.probes.command import CommandAttempt
from cgotel.watchers.probes.network import HttpAttempt, TcpAttempt
from cgotel.watchers.probes.schedule import SOURCE, Scheduled
from cgotel.watchers.probes.settings import Probe, ProbesSettings
from cgotel.watchers.probes.worker import Done

_SPREAD_S = 1.0
_UNITS = (".service", ".scope", ".socket", ".mount", ".slice")


class ProbesWatcher(Watcher):
    """Asks the configured workloads over HTTP and TCP or by a program, and tells what is worth telling."""

    name = SOURCE
    Config = ProbesSettings
    needs = ("[[watchers.probes.probe]] with a name, a kind, a target and a workload",)

    config: ProbesSettings

    def start(self) -> None:
        """Raises `Unavailable` where nothing is configured."""
        if not self.config.probe:
            raise Unavailable(
                SourceStatus(SOURCE, State.OFF, "no probe is configured", "add a [[watchers.probes.probe]]")
            )

    def watch(self, report: Report, stop: Stop) -> None:
        """Probe until asked to stop."""
        arrivals = _Arrivals()
        now_s = time.monotonic()
        spread_s = _SPREAD_S / len(self.config.probe)  # not all in the same instant
        probes = [
            Scheduled(probe, workload_of(probe.workload), maker(probe), self.timeline, now_s + n * spread_s)
            for n, probe in enumerate(self.config.probe)
        ]
        try:
            while not stop.is_set():
                for scheduled in probes:
                    for result in scheduled.tick(time.monotonic(), partial(arrivals.put, scheduled)):
                        report(result)
                left_s = min(scheduled.next_s for scheduled in probes) - time.monotonic()
                stop.wait_for(arrivals.fileno(), max(0.0, left_s))
                for scheduled, done in arrivals.take():
                    for result in scheduled.take(done):
                        report(result)
        finally:
            for scheduled in probes:
                scheduled.close()


class _Arrivals:
    """What came back from the threads of the probes."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[tuple[Scheduled, Done]] = queue.SimpleQueue()
        self._bell = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        weakref.finalize(self, os.close, self._bell)

    def fileno(self) -> int:
        """Readable while there is something to `take`."""
        return self._bell

    def put(self, scheduled: Scheduled, done: Done) -> None:
        """Bring something back; from any thread."""
        self._queue.put((scheduled, done))
        os.eventfd_write(self._bell, 1)

    def take(self) -> Iterator[tuple[Scheduled, Done]]:
        """What came since the last time."""
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._bell)
        with contextlib.suppress(queue.Empty):
            while True:
                yield self._queue.get_nowait()


def maker(probe: Probe) -> Callable[[], Attempt]:
    """What makes the attempts of a probe."""
    if probe.kind == "http":
        return partial(HttpAttempt, probe.url(), probe.timeout, probe.insecure)
    if probe.kind == "tcp":
        return partial(TcpAttempt, *probe.address(), probe.timeout)
    return partial(CommandAttempt, probe.command(), probe.timeout)


def workload_of(named: str) -> Workload:
    """For whom a probe speaks: a path is a cgroup, a unit is systemd's, any other name is any runtime's."""
    if named.startswith("/"):
        return Workload(runtime="cgroup", id=named, cgroup=named.rstrip("/") or "/")
    runtime = "systemd" if named.endswith(_UNITS) else ""
    return Workload(runtime=runtime, id=named, name=named)
