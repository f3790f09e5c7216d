"""Follows containers from event to event, and asks about one where an event alone does not tell.

Nothing here waits: `Follower.event` takes events in the order in which they came, `Follower.due` does
what can be done only a little later. Every wall time is in nanoseconds.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import msgspec

from cgotel.contract import Report, Timeline
from cgotel.evidence import RunEnded, RunStarted, Workload
from cgotel.runtimes.engine import told
from cgotel.runtimes.engine.messages import Container, Event
from cgotel.runtimes.latest import Latest

_MOST = 20_000
_NOT_STARTED_S = (2.0, 20.0)  # Podman says nothing of a start that failed: look at what was made, twice
_PROBED_S = 0.5  # the result of a probe is noted after the event of its process

Ask = Callable[[str], Container | None]
"""Look at a container; None where it is gone, or does not answer in time."""

Place = Callable[[str, Container | None], tuple[int | None, str | None]]
"""The pid and the cgroup of a container."""


class Ended(NamedTuple):
    """A run that is over: what may be asked of its log. ``next_began``: where another run followed."""

    workload: Workload
    time_ns: int
    began: int | None
    next_began: int | None
    tty: bool


@dataclass(slots=True)
class _Known:
    """A container: its current or last run."""

    workload: Workload
    began: int | None = None
    began_ns: int | None = None
    ended: int | None = None
    running: bool = False
    health: bool = False
    probed: int = 0
    probing: bool = False


@dataclass(slots=True)
class _Start:
    """A start that is awaited, since ``wall``."""

    wall: int
    name: str
    image: str


class Follower:
    """What is known of one daemon's containers. ``since``: older probes are not news."""

    def __init__(self, runtime: str, place: Place, timeline: Timeline, since: int) -> None:
        self._runtime = runtime
        self._place = place
        self._timeline = timeline
        self._since = since
        self._ask: Ask
        self._report: Report
        self._known: Latest[str, _Known] = Latest(_MOST)
        self._starting: Latest[str, _Start] = Latest(_MOST)
        self._later: list[tuple[float, str, str]] = []
        self.ended: list[Ended] = []

    def connect(self, ask: Ask, report: Report) -> None:
        """Whom to ask, and whom to tell, from now on."""
        self._ask = ask
        self._report = report

    # What happens

    def event(self, event: Event) -> None:
        """Take one event."""
        if event.topic == "network":
            self._network(event)
        elif event.action == "start":
            self._started(event)
        elif event.action in ("die", "died"):
            self._died(event)
        else:
            self._acted(event)

    def running(self, container: Container) -> None:
        """A container that runs, as it was found in a list."""
        if container.running and container.began is not None:
            self._begin(container)
            self._probes(container)

    def lost(self, container: str, since: int, wall: int) -> None:
        """One that ran at ``since``, does not at ``wall``, and whose end was not told."""
        self._died(Event(container, "container", "die", wall), late_ns=wall - since)

    def found_ended(self, container: Container, after: int, wall: int) -> None:
        """One that was found ended, though nobody said so: news if it ended after ``after``."""
        known = self._known.get(container.id)
        seen = known.ended if known else None
        if container.ended is None or container.ended <= max(after, seen or 0):
            return
        self._died(Event(container.id, "container", "die", wall), container)

    def alive(self) -> list[str]:
        """The ids of those that ran when last heard of."""
        return [container for container, known in self._known.items() if known.running]

    def due(self) -> float | None:
        """Do what is due; in how many seconds there is more, None if there is nothing."""
        while self._later and (left := self._later[0][0] - time.monotonic()) <= 0:
            _, what, container = heapq.heappop(self._later)
            if what == "start":
                self._not_started(container, exactly=None)
            elif (known := self._known.get(container)) is not None:
                known.probing = False
                if (found := self._ask(container)) is not None:
                    self._probes(found)
        return left if self._later else None

    def _look_later(self, what: str, container: str, seconds: float) -> None:
        if len(self._later) < _MOST:
            heapq.heappush(self._later, (time.monotonic() + seconds, what, container))

    # A run begins

    def _started(self, event: Event) -> None:
        self._starting.pop(event.container, None)
        container = self._ask(event.container)
        if container and container.began is not None and container.began <= event.wall_ns:
            self._begin(container)
            return
        # Gone already, or what is shown is a run after it.
        workload = msgspec.structs.replace(self._workload(event, container), pid=None)
        known = self._known.get(event.container) or _Known(workload, probed=self._since)
        began_ns = self._timeline.from_wall(event.wall_ns)
        if (known.began or 0) <= event.wall_ns:
            begun = replace(known, workload=workload, began=event.wall_ns, began_ns=began_ns, running=True)
            self._known.put(event.container, begun)
        self._report(
            RunStarted(
                source=self._runtime,
                time_ns=began_ns,
                uncertainty_ns=told.LATE_NS,
                cgroup=workload.cgroup,
                workload=workload,
            )
        )

    def _begin(self, container: Container) -> None:
        """A run of which everything can be seen. Told once."""
        assert container.began is not None
        known = self._known.get(container.id)
        if known and known.began is not None and known.began >= container.began:
            return
        workload = self._seen(container)
        began_ns = self._timeline.from_wall(container.began)
        self._known.put(
            container.id,
            _Known(
                workload,
                container.began,
                began_ns,
                known.ended if known else None,
                running=True,
                health=container.health is not None,
                probed=known.probed if known else self._since,
            ),
        )
        self._report(
            RunStarted(
                source=self._runtime,
                time_ns=began_ns,
                cgroup=workload.cgroup,
                workload=workload,
                restart_count=container.restart_count,
            )
        )

    # A run ends

    def _died(self, event: Event, container: Container | None = None, late_ns: int = told.LATE_NS) -> None:
        self._starting.pop(event.container, None)
        container = container or self._ask(event.container)
        known = self._known.get(event.container)
        mine = told.is_end_of(event, container)
        if known and mine and container and known.ended == container.ended:
            return
        workload = self._workload(event, container)
        if (known and (known.began or 0) > event.wall_ns) or (not known and container and container.running):
            workload = msgspec.structs.replace(workload, pid=None)  # a later run's
        began_ns = self._began_ns(event, container, known)
        ended = told.run_ended(event, container, workload, began_ns, self._timeline, late_ns)
        self._report(ended)
        if container is not None:
            self._report(told.runtime_state(event, container, ended))
            self._probes(container)
        self._note_end(event, container if mine else None, workload)
        self._log(event, container, ended)

    def _began_ns(self, event: Event, container: Container | None, known: _Known | None) -> int | None:
        """When the run that ended began; the very stamp with which its start was told, if it was."""
        if container and told.is_end_of(event, container) and not told.runs_again(container):
            began = container.began
        elif known and known.began is not None and (known.ended or 0) < known.began <= event.wall_ns:
            began = known.began
        else:
            return None
        if known and known.began == began:
            return known.began_ns
        return None if began is None else self._timeline.from_wall(began)

    def _note_end(self, event: Event, container: Container | None, workload: Workload) -> None:
        known = self._known.get(event.container) or _Known(workload, probed=self._since)
        wall = container.ended if container and container.ended else event.wall_ns
        later = (known.began or 0) > event.wall_ns
        self._known.put(
            event.container, replace(known, workload=workload, ended=wall, running=known.running and later)
        )

    def _log(self, event: Event, container: Container | None, ended: RunEnded) -> None:
        """Leave word for whoever reads logs; of a container that is gone there is none."""
        if container is None:
            return
        began = None if ended.began_ns is None else self._timeline.to_wall(ended.began_ns)
        followed = container.began if told.runs_again(container) else None
        self.ended.append(Ended(ended.workload, ended.time_ns, began, followed, container.tty))

    # A run does not begin

    def _network(self, event: Event) -> None:
        """A container is connected before it starts, and disconnected when it ended, or did not start."""
        known = self._known.get(event.container)
        if known and known.running:
            return
        if event.action == "connect":
            start = self._starting.get(event.container)
            named = start or _Start(event.wall_ns, "", "")
            self._starting.put(event.container, replace(named, wall=event.wall_ns))
        elif event.action == "disconnect" and event.container in self._starting:
            self._not_started(event.container, exactly=event.wall_ns)

    def _awaited(self, event: Event) -> None:
        self._starting.put(event.container, _Start(event.wall_ns, event.name, event.image))
        for seconds in _NOT_STARTED_S:
            self._look_later("start", event.container, seconds)

    def _not_started(self, container: str, exactly: int | None, surely: bool = False) -> None:
        """Tell of a start that failed, if that is what the engine says; ``surely``: its event does."""
        start = self._starting.get(container)
        found = self._ask(container) if start else None
        if start is None or found is None or found.running or (found.began or 0) >= start.wall:
            return
        if not found.error and not surely:
            return
        del self._starting[container]
        now = self._timeline.to_wall(self._timeline.now())
        workload = self._seen(found)
        self._report(
            RunEnded(
                source=self._runtime,
                time_ns=self._timeline.from_wall(exactly or start.wall),
                uncertainty_ns=0 if exactly else max(0, now - start.wall),
                cgroup=workload.cgroup,
                workload=workload,
                code=found.code or None,  # 0 is what Podman shows for want of any
                started=False,
                error=found.error,
            )
        )

    # Whatever else

    def _acted(self, event: Event) -> None:
        known = self._known.get(event.container)
        workload = self._workload(event, None)
        if known and workload != known.workload:
            self._known.put(event.container, replace(known, workload=workload))
        self._report(told.runtime_action(event, workload, self._timeline))
        if event.action == "create":
            self._awaited(event)
        elif event.action == "cleanup" and event.container in self._starting:
            self._not_started(event.container, exactly=event.wall_ns, surely=True)
        elif event.action in ("destroy", "remove"):
            self._known.pop(event.container, None)
            self._starting.pop(event.container, None)
        elif known and known.health and event.action in ("exec_die", "exec_died", "health_status"):
            self._probed_soon(event.container)

    def _probed_soon(self, container: str) -> None:
        known = self._known[container]
        if not known.probing:
            known.probing = True
            self._look_later("probe", container, _PROBED_S)

    def _probes(self, container: Container) -> None:
        known = self._known.get(container.id)
        if known is None or container.health is None:
            return
        known.health = True
        results = told.probe_results(container.health, known.probed, known.workload, self._timeline)
        for ended, result in results:
            known.probed = max(known.probed, ended)
            self._report(result)

    def _seen(self, container: Container) -> Workload:
        pid, cgroup = self._place(container.id, container)
        return Workload(
            runtime=self._runtime,
            id=container.id,
            name=container.name,
            cgroup=cgroup,
            pid=pid,
            image=container.image,
            image_id=container.image_id,
            pod=container.pod,
            namespace=container.namespace,
        )

    def _workload(self, event: Event, container: Container | None) -> Workload:
        """Who an event is about: what was known, under its newest name."""
        if known := self._known.get(event.container):
            named = event.name or known.workload.name
            return msgspec.structs.replace(known.workload, name=named)
        if container is not None:
            return self._seen(container)
        pid, cgroup = self._place(event.container, None)
        return Workload(
            runtime=self._runtime,
            id=event.container,
            name=event.name,
            cgroup=cgroup,
            pid=pid,
            image=event.image,
            pod=event.pod,
            namespace=event.namespace,
        )
