"""``signals``: who sent a deadly signal to whom, and whom the kernel chose to end for memory.

Two tracepoints in a tracing instance of our own: signal:signal_generate (include/trace/events/signal.h)
and oom:mark_victim. Both name tasks by the kernel's own ids; what else is told of a task is read from
/proc at once, since a runtime that kills is gone some milliseconds later.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple

import msgspec

from cgotel.contract import (
    Bookmark,
    Report,
    Roots,
    SourceStatus,
    State,
    Stop,
    Timeline,
    Unavailable,
    Watcher,
    WatcherSettings,
)
from cgotel.evidence import Gap, OomMark, Signal
from cgotel.hookspecs import hookimpl
from cgotel.kernel import tasks
from cgotel.kernel.source import state_of
from cgotel.kernel.trace_text import Lost, Record
from cgotel.kernel.tracefs import TraceInstance, mounted
from cgotel.watchers.attendance import EVERY_S, Attendance

_SIGNALS = (signal.SIGINT, signal.SIGQUIT, signal.SIGABRT, signal.SIGKILL, signal.SIGTERM)
_GENERATE, _MARK = "signal/signal_generate", "oom/mark_victim"
_STAMP_NS = 1000  # times are printed in microseconds
_BURST = 3000  # a whole pod killed at once is worth every line of it
_STEADY_PER_S = 200
_PAUSE_S = 1.0


class SignalsConfig(WatcherSettings, frozen=True):
    """``[watchers.signals]``."""

    signals: tuple[Annotated[int, msgspec.Meta(ge=1, le=64)], ...] = tuple(map(int, _SIGNALS))
    """Which signals are told, by number: those that end things, and those that images stop with."""

    buffer: Annotated[int, msgspec.Meta(ge=16, le=65536)] = 128
    """KiB of kernel memory for each CPU, in which signals wait to be read."""


class Sender(NamedTuple):
    """What /proc tells of a sender; empty where it is gone."""

    pid: int
    parent: str = ""
    cgroup: str = ""


class Signals(Watcher):
    """Deadly signals with their senders, and victims of the OOM killer, within milliseconds."""

    name = "signals"
    Config = SignalsConfig
    needs = ("tracefs at /sys/kernel/tracing, writable: root, and no lockdown of the kernel",)

    config: SignalsConfig

    def __init__(self, config: Any, roots: Roots, timeline: Timeline, bookmark: Bookmark) -> None:
        super().__init__(config, roots, timeline, bookmark)
        self._attendance = Attendance(self.name, timeline, bookmark)
        self._proc: str | None = roots.proc
        self._trace: TraceInstance | None = None
        self._began_ns = 0
        self._seen_ns: dict[int, int] = {}
        self._budget = 0.0

    def start(self) -> None:
        tracing = mounted(self.roots.sys)
        if tracing is None:
            reason = f"tracefs is not mounted at {self.roots.sys}/kernel/tracing, or it may not be looked at"
            remedy = "run as root, with tracefs mounted there; in a container, mount it from the host"
            raise Unavailable(SourceStatus(self.name, State.MASKED, reason, remedy))
        wanted = " || ".join(f"sig == {number}" for number in self.config.signals)
        events = {_GENERATE: wanted, _MARK: None} if wanted else {_MARK: None}
        try:
            self._trace = TraceInstance(tracing, events, self.config.buffer)
        except OSError as error:
            where = f"{error.filename or tracing}: {error.strerror}"
            remedy = "run as root, with tracefs writable; a locked down kernel (lockdown=) never permits it"
            raise Unavailable(SourceStatus(self.name, state_of(error), where, remedy)) from error
        except ValueError as error:
            raise Unavailable(SourceStatus(self.name, State.FAILED, str(error))) from error
        self._proc = self.roots.proc if tasks.counts_as_host(self.roots.proc) else None
        self._began_ns = self.timeline.now()
        self._seen_ns.clear()
        self._budget = _BURST

    def watch(self, report: Report, stop: Stop) -> None:
        trace = self._started()
        report(self._attendance.absence(self._began_ns))
        filled_ns = self._began_ns
        try:
            while not stop.is_set():
                self._attendance.note()
                if stop.wait_for(trace.fileno(), EVERY_S):
                    self._budget -= self._hear(trace, report)
                now = self.timeline.now()
                self._budget = min(_BURST, self._budget + (now - filled_ns) / 1e9 * _STEADY_PER_S)
                filled_ns = now
                if self._budget < 0:
                    self._sit_out(trace, report, stop)
        except EOFError as error:
            raise Unavailable(SourceStatus(self.name, State.GONE, str(error))) from error
        finally:
            self._attendance.note(last=True)

    def sources(self) -> Iterator[SourceStatus]:
        if self._proc is None:
            reason = f"{self.roots.proc} is of another pid namespace: cgroups and parents cannot be looked up"
            remedy = "share the host's pid namespace (--pid=host), or set HOST_PROC to the host's /proc"
            yield SourceStatus(f"{self.name}.proc", State.MASKED, reason, remedy)

    def close(self) -> None:
        if self._trace is not None:
            self._trace.close()
            self._trace = None

    def _started(self) -> TraceInstance:
        assert self._trace is not None, "watch() before start()"
        return self._trace

    def _hear(self, trace: TraceInstance, report: Report) -> int:
        """Report what can be read now, in its order; how much that was."""
        senders: dict[int, Sender] = {}
        count = 0
        missed: tuple[int, str] | None = None
        for item in trace.read():
            count += 1
            if isinstance(item, Record):
                time_ns = self.timeline.from_boottime(item.time_ns)
                if missed is not None:
                    report(self._gap(*missed, time_ns))
                    missed = None
                report(self._told(item, time_ns, senders))
                self._seen_ns[item.cpu] = time_ns
            elif isinstance(item, Lost):
                reason = f"{item.events or 'some'} signals were overwritten before they were read"
                missed = self._seen_ns.get(item.cpu, self._began_ns), reason
            elif missed is None:
                missed = self._last_ns(), "the kernel's text of a signal could not be read"
        if missed is not None:
            report(self._gap(*missed, self.timeline.now()))
        return count

    def _sit_out(self, trace: TraceInstance, report: Report, stop: Stop) -> None:
        """More signals come than anyone could want to know: look away for a while."""
        since_ns = self._last_ns()
        stop.wait(_PAUSE_S)
        trace.skip()
        self._began_ns = self.timeline.now()
        self._seen_ns.clear()
        self._budget = _STEADY_PER_S * _PAUSE_S
        report(self._gap(since_ns, f"more than {_STEADY_PER_S} signals a second", self._began_ns))

    def _last_ns(self) -> int:
        return max(self._seen_ns.values(), default=self._began_ns)

    def _gap(self, since_ns: int, reason: str, time_ns: int) -> Gap:
        return Gap(source=self.name, time_ns=max(time_ns, since_ns), since_ns=since_ns, reason=reason)

    def _told(self, record: Record, time_ns: int, senders: dict[int, Sender]) -> Signal | OomMark:
        """A record in the words of evidence, with what /proc tells of its tasks now."""
        fields = record.fields
        pid, comm = int(fields["pid"]), str(fields.get("comm", ""))
        target = self._process(pid)
        cgroup = tasks.cgroup(self._proc, pid) if self._proc else None
        if record.event == "mark_victim":
            return OomMark(
                source=self.name,
                time_ns=time_ns,
                uncertainty_ns=_STAMP_NS,
                cgroup=cgroup,
                pid=target,
                comm=comm,
            )
        sender = senders.get(record.pid)
        if sender is None:
            sender = senders[record.pid] = self._sender(record.pid)
        return Signal(
            source=self.name,
            time_ns=time_ns,
            uncertainty_ns=_STAMP_NS,
            cgroup=cgroup,
            signal=int(fields["sig"]),
            code=int(fields["code"]),
            pid=target,
            comm=comm,
            sender_pid=sender.pid,
            sender_comm=record.comm,
            sender_parent=sender.parent,
            sender_cgroup=sender.cgroup,
            result=int(fields["result"]),
        )

    def _process(self, pid: int) -> int:
        """The process that a thread is of: a tracepoint names threads (a Go runtime kills from any)."""
        found = tasks.ids(self._proc, pid) if self._proc else None
        return found.process if found else pid

    def _sender(self, pid: int) -> Sender:
        if self._proc is None or pid == 0:  # 0 is the idle task: a timer sent it
            return Sender(pid)
        cgroup = tasks.cgroup(self._proc, pid) or ""
        found = tasks.ids(self._proc, pid)
        return (
            Sender(found.process, tasks.comm(self._proc, found.parent), cgroup)
            if found
            else Sender(pid, cgroup=cgroup)
        )


@hookimpl
def cgotel_watchers() -> list[type[Signals]]:
    return [Signals]
