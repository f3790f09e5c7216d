"""One probe in time: when it is due, when its time is up, and what is then said of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from cgotel.contract import Timeline
from cgotel.evidence import ProbeResult, Workload
from cgotel.watchers.probes.attempt import Attempt, Outcome
from cgotel.watchers.probes.history import History
from cgotel.watchers.probes.settings import Probe
from cgotel.watchers.probes.worker import Done, Give, Worker

SOURCE = "probes"

_GRACE_S = 0.25
"""An attempt ends itself at its timeout and says more; one that does not is called off after this."""


class Scheduled:
    """A probe at work. All times are of CLOCK_MONOTONIC, in seconds."""

    def __init__(
        self,
        probe: Probe,
        workload: Workload,
        make: Callable[[], Attempt],
        timeline: Timeline,
        first_s: float,
    ) -> None:
        self._probe = probe
        self._workload = workload
        self._make = make
        self._timeline = timeline
        self._due_s = first_s
        self._up_s: float | None = None
        self._running: Attempt | None = None
        self._worker = Worker(probe.name)
        self._history = History(probe.threshold)

    @property
    def next_s(self) -> float:
        """When `tick` has something to do."""
        return self._due_s if self._up_s is None else min(self._due_s, self._up_s)

    def tick(self, now_s: float, give: Give) -> Iterator[ProbeResult]:
        """Begin what is due, call off what took too long."""
        if self._up_s is not None and now_s >= self._up_s:
            assert self._running is not None
            self._running.cancel()
            self._up_s = None
            yield from self._judge(Outcome(False, "not in time"), self._probe.timeout)
        if now_s < self._due_s:
            return
        missed = (now_s - self._due_s) // self._probe.interval
        self._due_s += (missed + 1) * self._probe.interval
        if self._running is None:
            self._running = self._make()
            self._up_s = now_s + self._probe.timeout + _GRACE_S
            self._worker.start(self._running, give)
        elif self._up_s is None:
            yield from self._judge(Outcome(False, "an earlier attempt still hangs"), None)

    def take(self, done: Done) -> Iterator[ProbeResult]:
        """An attempt came back; it was judged already if it came too late."""
        if done.attempt is not self._running:
            return
        in_time, self._up_s, self._running = self._up_s is not None, None, None
        if not in_time:
            return
        outcome = done.outcome
        if outcome.ok and done.latency_s > self._probe.timeout:
            outcome = Outcome(False, f"too late: {outcome.text}" if outcome.text else "too late")
        yield from self._judge(outcome, done.latency_s)

    def close(self) -> None:
        """Call off what runs, and end its thread."""
        if self._running is not None:
            self._running.cancel()
        self._worker.close()

    def _judge(self, outcome: Outcome, latency_s: float | None) -> Iterator[ProbeResult]:
        result = ProbeResult(
            source=SOURCE,
            time_ns=self._timeline.now(),
            cgroup=self._workload.cgroup,
            workload=self._workload,
            ok=outcome.ok,
            latency_s=latency_s,
            failures=None if outcome.ok else self._history.failures + 1,
            text=outcome.text,
            probe=self._probe.name,
            threshold=self._probe.threshold,
        )
        yield from self._history.add(result)
