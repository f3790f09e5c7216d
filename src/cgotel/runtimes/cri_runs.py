"""What runs in the pods of one node: from lists and states of containers to evidence."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from cgotel.contract import Report, Roots, Timeline
from cgotel.evidence import RunEnded, RunStarted, RuntimeState, Workload
from cgotel.runtimes import containerd_names as names
from cgotel.runtimes import cri_api as api
from cgotel.runtimes.cri_client import Status
from cgotel.runtimes.latest import Latest
from cgotel.runtimes.process import cgroup_of

SOURCE = "cri"

_MOST = 5000
_OOM_KILLED = "OOMKilled"


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """A container that runs. ``began_ns`` is wall time, so that it can be kept."""

    workload: Workload
    began_ns: int


class Runs:
    """Tells of every run once. ``ask`` gives the state of a container, None where it is gone."""

    def __init__(
        self,
        report: Report,
        timeline: Timeline,
        roots: Roots,
        ask: Callable[[str, bool], Status | None],
    ) -> None:
        self.running: dict[str, Run] = {}
        self._report = report
        self._timeline = timeline
        self._roots = roots
        self._ask = ask
        self._ended: Latest[str, None] = Latest(_MOST)
        self._unsettled: Latest[str, tuple[Workload, str]] = Latest(_MOST)

    def remember(self, runs: Mapping[str, Run]) -> None:
        """Containers that ran when somebody watched before."""
        self.running.update(runs)

    def compare(self, states: Mapping[str, int], seen_ns: int) -> None:
        """Tell what changed since the last look, which was at ``seen_ns`` (wall time)."""
        for container_id, state in states.items():
            if state == api.RUNNING and container_id not in self.running:
                self._begin(container_id)
            elif state == api.EXITED and container_id not in self._ended:
                self._end(container_id, seen_ns)
        for container_id in self.running.keys() - states.keys():
            self._miss(container_id, seen_ns)

    def settle(self) -> None:
        """Look again at what ended: a reason may turn from Error to OOMKilled a moment later."""
        while self._unsettled:
            container_id, (workload, reason) = self._unsettled.popitem(last=False)
            status = self._ask(container_id, False)
            if status is not None and status.reason != reason:
                self._tell_state(workload, status)

    @property
    def unsettled(self) -> bool:
        """Whether there is something to `settle`."""
        return bool(self._unsettled)

    def _begin(self, container_id: str) -> None:
        status = self._ask(container_id, True)
        if status is None or not status.running:
            return
        workload = self._workload(container_id, status)
        self.running[container_id] = Run(workload=workload, began_ns=status.started_ns)
        self._report(
            RunStarted(
                source=SOURCE,
                time_ns=self._timeline.from_wall(status.started_ns),
                cgroup=workload.cgroup,
                workload=workload,
                restart_count=status.attempt,
            )
        )

    def _end(self, container_id: str, seen_ns: int) -> None:
        status = self._ask(container_id, container_id not in self.running)
        if status is None or not status.exited:
            return
        self._ended.put(container_id, None)
        known = self.running.pop(container_id, None)
        workload = known.workload if known else self._workload(container_id, status)
        self._tell_state(workload, status)
        if known is None and status.finished_ns <= seen_ns:
            return  # long ago: the state is a witness, and no news
        self._unsettled.put(container_id, (workload, status.reason))
        self._report(
            RunEnded(
                source=SOURCE,
                time_ns=self._timeline.from_wall(status.finished_ns),
                cgroup=workload.cgroup,
                workload=workload,
                began_ns=self._timeline.from_wall(status.started_ns) if status.started_ns else None,
                code=status.code,
                started=status.started_ns > 0,
                error=status.message,
            )
        )

    def _miss(self, container_id: str, seen_ns: int) -> None:
        """A container is not there any more, and nobody saw it end: somewhere between then and now."""
        run = self.running.pop(container_id)
        self._ended.put(container_id, None)
        now_ns = self._timeline.to_wall(self._timeline.now())
        half_ns = max(0, now_ns - max(seen_ns, run.began_ns)) // 2
        self._report(
            RunEnded(
                source=SOURCE,
                time_ns=self._timeline.from_wall(now_ns - half_ns),
                uncertainty_ns=half_ns,
                cgroup=run.workload.cgroup,
                workload=run.workload,
                began_ns=self._timeline.from_wall(run.began_ns),
                error="its container was removed and was not seen ending",
            )
        )

    def _tell_state(self, workload: Workload, status: Status) -> None:
        self._report(
            RuntimeState(
                source=SOURCE,
                time_ns=self._timeline.from_wall(status.finished_ns),
                cgroup=workload.cgroup,
                workload=workload,
                code=status.code,
                oom_killed=status.reason == _OOM_KILLED,
                reason=status.reason,
                error=status.message,
                restart_count=status.attempt,
            )
        )

    def _workload(self, container_id: str, status: Status) -> Workload:
        labels = status.labels
        cgroup = cgroup_of(status.pid, self._roots) if status.pid and status.running else None
        return Workload(
            runtime=SOURCE,
            id=container_id,
            name=names.name_in_pod(labels, status.name),
            cgroup=cgroup or status.cgroup,
            pid=status.pid or None,
            image=status.image,
            image_id=status.image_id,
            pod=labels.get(names.POD, ""),
            namespace=labels.get(names.POD_NAMESPACE, ""),
        )
