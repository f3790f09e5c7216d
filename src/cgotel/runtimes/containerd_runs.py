"""What runs under one containerd: from its events and its list of tasks to evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

import msgspec

from cgotel.contract import Report, Roots, Timeline
from cgotel.evidence import RunEnded, RunStarted, RuntimeAction, RuntimeState, Workload
from cgotel.runtimes import containerd_names as names
from cgotel.runtimes.containerd_client import Container, Happening, Task
from cgotel.runtimes.latest import Latest
from cgotel.runtimes.process import TICK_NS, process
from cgotel.runtimes.shims import Shims

SOURCE = "containerd"

Place: TypeAlias = tuple[str, str]
"""A namespace, and the id of a container in it."""

Owner: TypeAlias = Callable[[str], str | None]
"""The runtime whose watcher tells of the deaths in a namespace; None where that is containerd's."""

_MOST = 5000
_MADE_UP_CODES = (137, 255)
_AT_ONCE_NS = 1_000_000
_ACTIONS = {
    "ContainerCreate": "create",
    "ContainerDelete": "destroy",
    "TaskDelete": "delete",
    "TaskOOM": "oom",
    "TaskPaused": "pause",
    "TaskResumed": "unpause",
}


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a container's main process. ``began_ns`` is wall time, so that it can be kept."""

    workload: Workload
    began_ns: int | None = None
    shim: int | None = None
    restarts: int | None = None


NO_RUNS: Mapping[Place, Run] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class _Death:
    """An exit as an event told it. ``doubtful``: its code may be containerd's own."""

    time_ns: int
    code: int
    doubtful: bool


class Runs:
    """Tells of every run once, whether an event or the list of tasks told of it first.

    ``look`` asks for a container, and answers None where it is gone.
    """

    def __init__(
        self,
        report: Report,
        timeline: Timeline,
        roots: Roots,
        shims: Shims,
        look: Callable[[str, str], Container | None],
        owner: Owner,
    ) -> None:
        self.running: dict[Place, Run] = {}
        self._report = report
        self._timeline = timeline
        self._roots = roots
        self._shims = shims
        self._look = look
        self._owner = owner
        self._images: Latest[Place, str] = Latest(_MOST)
        self._made: Latest[Place, Run] = Latest(_MOST)
        self._last: Latest[Place, Workload] = Latest(_MOST)
        self._ended: Latest[tuple[Place, int], _Death | None] = Latest(_MOST)

    def remember(self, runs: Mapping[Place, Run]) -> None:
        """Runs that were there when somebody watched before."""
        self.running.update(runs)
        for run in runs.values():
            self._watch_shim(run)

    def take(self, event: Happening) -> None:
        """Tell what an event says."""
        place = (event.namespace, event.container)
        match event.kind:
            case "TaskCreate":
                self._made.put(place, self._meet(place, event.pid))
            case "TaskStart":
                self._take_start(place, event)
            case "TaskExit" if event.process != event.container:
                self._act(place, event, "exec_die", f"exit {event.code}")
            case "TaskExit":
                self._take_exit(place, event)
            case kind if kind in _ACTIONS:
                self._take_action(place, event)

    def compare(self, tasks: Iterable[Task], seen_ns: int, before: Mapping[Place, Run] = NO_RUNS) -> None:
        """Tell what the list of tasks says and no event did.

        ``seen_ns`` is the wall time up to which somebody watched, or of the beginning. ``before``
        are runs of before the listing; one that is in neither has ended unseen.
        """
        listed = set()
        for task in tasks:
            place = (task.namespace, task.container)
            listed.add(place)
            if task.stopped:
                self._find_stopped(place, task, seen_ns)
            elif not task.created:
                self._find_running(place, task.pid)
        for place, run in before.items():
            if place not in listed and self.running.get(place) == run:
                self._miss(place, seen_ns)

    # A run begins

    def _take_start(self, place: Place, event: Happening) -> None:
        if self._knows(place, event.pid):
            return
        run = self._made.pop(place, None)
        if run is None or run.workload.pid != event.pid:
            run = self._meet(place, event.pid)
        self._begin(place, run, self._timeline.from_wall(event.time_ns), 0)

    def _find_running(self, place: Place, pid: int) -> None:
        if self._knows(place, pid) or (place, pid) in self._ended:
            return
        if place in self.running:
            self._miss(place, 0)
        found = process(pid, self._roots)
        if found is None:  # it ends at this moment: an event will say so
            return
        began_ns = self._timeline.from_boottime(found.began_boottime_ns)
        self._begin(place, self._meet(place, pid), began_ns, TICK_NS)

    def _begin(self, place: Place, run: Run, time_ns: int, uncertainty_ns: int) -> None:
        self._last.put(place, run.workload)
        if (place, run.workload.pid) not in self._ended:
            self._watch_shim(run)
            began_ns = self._timeline.to_wall(time_ns)
            self.running[place] = msgspec.structs.replace(run, began_ns=began_ns)
        if self._owner(place[0]) is None:
            self._report(
                RunStarted(
                    source=SOURCE,
                    time_ns=time_ns,
                    uncertainty_ns=uncertainty_ns,
                    cgroup=run.workload.cgroup,
                    workload=run.workload,
                    restart_count=run.restarts,
                )
            )

    def _watch_shim(self, run: Run) -> None:
        if run.shim is not None:
            self._shims.watch(run.shim)

    def _knows(self, place: Place, pid: int) -> bool:
        run = self.running.get(place)
        return run is not None and run.workload.pid == pid

    def _meet(self, place: Place, pid: int) -> Run:
        """Ask all that can be asked of a main process while it lives."""
        owner = self._owner(place[0])
        found = process(pid, self._roots)
        container = self._look(*place) if owner is None else None
        if container is None:
            container = Container(self._images.get(place, ""))
        who = names.workload(*place, owner or SOURCE, pid, container, found)
        return Run(workload=who, shim=found.parent if found else None, restarts=names.restarts(container))

    # A run ends

    def _take_exit(self, place: Place, event: Happening) -> None:
        if (place, event.pid) in self._ended:
            return
        run = self._run_of(place, event.pid)
        doubtful = event.code in _MADE_UP_CODES and not (run.shim and self._shims.lives(run.shim))
        died_ns = self._shims.died_ns(run.shim) if doubtful and run.shim else None
        if died_ns is not None and died_ns < self._timeline.from_wall(event.time_ns):
            self._tell_of_dead_shim(place, event, run.workload)
            doubtful = False
        self._ended.put((place, event.pid), _Death(event.time_ns, event.code, doubtful))
        self._end(place, run, event.exited_ns or event.time_ns, event.code)

    def _tell_of_dead_shim(self, place: Place, event: Happening, who: Workload) -> None:
        self._last.put(place, who)
        told = f"its shim had died: containerd cleaned up, and the code {event.code} is its own"
        self._act(place, event, "shim_died", told)

    def _find_stopped(self, place: Place, task: Task, seen_ns: int) -> None:
        if (place, task.pid) in self._ended:
            return
        self._ended.put((place, task.pid), None)
        run = self._run_of(place, task.pid)
        self._last.put(place, run.workload)
        if self._knows(place, task.pid) or task.exited_ns > seen_ns:
            self._end(place, run, task.exited_ns, task.code)
        elif self._owner(place[0]) is None:
            self._report(
                RuntimeState(
                    source=SOURCE,
                    time_ns=self._timeline.from_wall(task.exited_ns),
                    cgroup=run.workload.cgroup,
                    workload=run.workload,
                    code=task.code,
                )
            )

    def _miss(self, place: Place, seen_ns: int) -> None:
        """A run is not there any more, and nobody saw it end: somewhere between then and now."""
        run = self.running[place]
        now_ns = self._timeline.to_wall(self._timeline.now())
        since_ns = max(seen_ns, run.began_ns or 0) or now_ns
        half_ns = max(0, now_ns - since_ns) // 2
        told = "containerd knows its task no more and was not seen ending it"
        self._end(place, run, now_ns - half_ns, None, half_ns, told)

    def _run_of(self, place: Place, pid: int) -> Run:
        """The run that a pid belongs to: known to run, known to be made, or met only now."""
        for run in (self.running.get(place), self._made.get(place)):
            if run is not None and run.workload.pid == pid:
                return run
        return self._meet(place, pid)

    def _end(
        self,
        place: Place,
        run: Run,
        exited_ns: int,
        code: int | None,
        uncertainty_ns: int = 0,
        error: str = "",
    ) -> None:
        if self.running.get(place, run).workload.pid == run.workload.pid:
            self.running.pop(place, None)
        self._last.put(place, run.workload)
        if self._owner(place[0]) is None:
            self._report(
                RunEnded(
                    source=SOURCE,
                    time_ns=self._timeline.from_wall(exited_ns),
                    uncertainty_ns=uncertainty_ns,
                    cgroup=run.workload.cgroup,
                    workload=run.workload,
                    began_ns=None if run.began_ns is None else self._timeline.from_wall(run.began_ns),
                    code=code,
                    error=error,
                )
            )

    # Anything else

    def _take_action(self, place: Place, event: Happening) -> None:
        if event.kind == "ContainerCreate":
            self._images.put(place, event.image)
        if event.kind == "TaskDelete":
            if event.process != event.container:
                return  # of an exec, whose exit was told
            self._take_delete(place, event)
        self._act(place, event, _ACTIONS[event.kind])
        if event.kind == "ContainerDelete":
            for memory in (self._images, self._made, self._last):
                memory.pop(place, None)

    def _take_delete(self, place: Place, event: Happening) -> None:
        self._made.pop(place, None)
        death = self._ended.get((place, event.pid))
        if death is None:
            self._take_exit(place, event)  # its own event was lost; nothing where it was told
        elif _by_containerd_itself(death, event):
            self._tell_of_dead_shim(place, event, self._last[place])

    def _act(self, place: Place, event: Happening, action: str, reason: str = "") -> None:
        who = self._last.get(place)
        if who is None:
            container = Container(self._images.get(place, ""))
            who = names.workload(*place, self._owner(place[0]) or SOURCE, None, container, None)
        self._report(
            RuntimeAction(
                source=SOURCE,
                time_ns=self._timeline.from_wall(event.time_ns),
                cgroup=who.cgroup,
                workload=who,
                action=action,
                reason=reason,
            )
        )


def _by_containerd_itself(death: _Death, deleted: Happening) -> bool:
    """Whether an exit was made up for a shim whose death nobody saw (core/runtime/v2, cleanupAfterDeadShim).

    containerd publishes the exit and the deletion in one breath then, 30 µs apart. Otherwise a client
    hears of the exit, asks for the deletion, and the shim runs the OCI runtime for it: 10 ms and more.
    """
    return death.doubtful and 0 <= deleted.time_ns - death.time_ns < _AT_ONCE_NS
