"""Turns the states of one unit, in their order, into evidence: runs that begin and end, and their results.

PID 1 sends what changed before it changes anything else (service_set_state() in systemd's
src/core/service.c), so a series of signals holds every run, however short, and no run's figures are
taken from the next one's. The other way, asking for properties when something changed, loses both.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cgotel.clock import Timeline
from cgotel.evidence import Evidence, Gap, RunEnded, RunStarted, UnitResult, Workload
from cgotel.runtimes.systemd import exit_status
from cgotel.runtimes.systemd.states import DUMPED, EXITED, KILLED, Details, UnitState, is_container

SOURCE = "systemd"

_REAPED_LATE_NS = 20_000_000  # PID 1 stamps an exit when it gets to reap it
_EXEC_NS = 5 * 10**9  # a program that ran longer than this did begin, whatever it ends with


@dataclass(slots=True)
class Run:
    """One run: its main process (None where systemd knows none), and what was told of it already."""

    invocation: str
    pid: int | None
    began_ns: int
    began_us: int = 0
    job: str = ""
    ordered: bool = False
    stopping: bool = False
    ended: bool = False
    code: int | None = None
    signal: int | None = None


class Unit:
    """One service or scope. ``details`` may be learned after the first state."""

    def __init__(self, name: str, timeline: Timeline) -> None:
        self.name = name
        self.details = Details()
        self._timeline = timeline
        self._container = is_container(name)
        self._run: Run | None = None
        self._told = ""  # the invocation whose result is out
        self._up = ""  # the latest invocation that was seen up
        self._restarting = False

    @property
    def alive(self) -> bool:
        """A run of it goes on, as far as it was told."""
        return self._run is not None and not self._run.ended

    @property
    def told(self) -> str:
        """The latest invocation whose result was reported, empty if none was."""
        return self._told

    def order(self, job: str) -> None:
        """A job was queued while a run went on: ``stop``, ``restart``; empty where its kind is not known."""
        if self._run is not None and not self._run.ended:
            self._run.job = job
            self._run.ordered = True

    def take(self, state: UnitState) -> Iterator[Evidence]:
        """What this state says that the one before did not."""
        if not self._container:
            yield from self._begin(state)
            yield from self._end(state)
        yield from self._settle(state)
        if state.restarting:
            self._restarting = True
        elif state.active != "inactive":
            self._restarting = False  # it runs again, or was refused; inactive comes in between (systemd 252)

    def skip(self, state: UnitState) -> None:
        """Take a state as known: what ended before anybody looked is no news."""
        for _ in self.take(state):
            pass

    def lost(self, reason: str) -> Iterator[Evidence]:
        """The unit is gone: a run that went on has ended, and nobody said how."""
        if self._run is not None and not self._run.ended:
            yield self._gap(self._run.began_ns, reason)
            self._run.ended = True

    # Runs

    def _begin(self, state: UnitState) -> Iterator[Evidence]:
        run = self._run
        if state.last_pid and state.began_us:
            # A start that fails before its main process keeps the last run's figures, so these tell.
            new = run is None or (run.pid, run.began_us) != (state.last_pid, state.began_us)
            began_ns = self._timeline.from_monotonic(state.began_us * 1000)
        else:
            new = state.running and (run is None or run.invocation != state.invocation)
            began_ns = self._timeline.from_monotonic(state.active_us * 1000)
        if not new:
            return
        if run is not None and not run.ended and run.invocation != state.invocation:
            yield self._gap(run.began_ns, f"{self.name}: the end of a run was not told")
        self._run = Run(state.invocation, state.last_pid or None, began_ns, state.began_us)
        yield RunStarted(
            source=SOURCE,
            time_ns=began_ns,
            cgroup=self.details.cgroup,
            workload=self._workload(),
            restart_count=state.restarts,
        )

    def _end(self, state: UnitState) -> Iterator[Evidence]:
        run = self._run
        if run is None or run.ended:
            return
        if state.active == "deactivating" and state.result == "success" and state.main_pid == run.pid:
            run.stopping = True  # nothing failed and yet it is being ended
        if run.pid is None:
            if state.at_rest:
                run.ended = True
                yield self._ended(run, self._stamp(state.inactive_us))
        elif state.last_pid == run.pid and state.ended_us and state.code and state.main_pid != run.pid:
            run.ended = True
            run.code = state.status if state.code == EXITED else None
            run.signal = state.status if state.code in (KILLED, DUMPED) else None
            yield self._ended(run, self._stamp(state.ended_us))

    def _ended(self, run: Run, time_ns: int) -> Evidence:
        error = ""
        if run.code is not None and time_ns - run.began_ns < _EXEC_NS:
            error = exit_status.setup_error(run.code)
        return RunEnded(
            source=SOURCE,
            time_ns=time_ns,
            uncertainty_ns=_REAPED_LATE_NS,
            cgroup=self.details.cgroup,
            workload=self._workload(),
            began_ns=run.began_ns,
            code=run.code,
            signal=run.signal,
            started=not error,
            error=error,
        )

    # Results

    def _settle(self, state: UnitState) -> Iterator[Evidence]:
        """Once a unit is at rest its Result is final."""
        if not state.at_rest:
            self._up = state.invocation
            return
        if not state.invocation:
            return
        run = self._run if self._run is not None and self._run.invocation == state.invocation else None
        if self._told == state.invocation:
            if self._restarting and state.active == "failed" and not state.restarting:
                yield self._not_started(state, "start-limit-hit")
            return
        if run is not None and not run.ended:
            return  # its exit is still to be told
        failed = state.result != "success"
        if run is None and not failed and not (self._container and self._up == state.invocation):
            return  # not up yet: what was pending is sent before a start, with the new invocation
        if run is None and not self._container:
            yield self._not_started(state, state.result)
        yield self._result(state, run)
        self._told = state.invocation

    def _not_started(self, state: UnitState, result: str) -> Evidence:
        return RunEnded(
            source=SOURCE,
            time_ns=self._stamp(state.inactive_us),
            uncertainty_ns=_REAPED_LATE_NS,
            cgroup=self.details.cgroup,
            workload=self._workload(),
            started=False,
            error=f"systemd: {result}",
        )

    def _result(self, state: UnitState, run: Run | None) -> Evidence:
        return UnitResult(
            source=SOURCE,
            time_ns=self._timeline.now(),
            cgroup=self.details.cgroup,
            workload=self._workload(),
            result=state.result,
            code=None if run is None else run.code,
            signal=None if run is None else run.signal,
            restarts=state.restarts,
            oom_policy=self.details.oom_policy,
            job="" if run is None else _job(run),
        )

    def _stamp(self, monotonic_us: int) -> int:
        return self._timeline.from_monotonic(monotonic_us * 1000) if monotonic_us else self._timeline.now()

    def _gap(self, since_ns: int, reason: str) -> Gap:
        return Gap(
            source=SOURCE,
            time_ns=self._timeline.now(),
            since_ns=since_ns,
            reason=reason,
            cgroup=self.details.cgroup,
        )

    def _workload(self) -> Workload:
        pid = None if self._run is None else self._run.pid
        return Workload(runtime="systemd", id=self.name, name=self.name, cgroup=self.details.cgroup, pid=pid)


def _job(run: Run) -> str:
    """The job that ended it. One that is done at once cannot be asked for its kind."""
    return run.job or ("stop" if run.ordered and run.stopping else "")
