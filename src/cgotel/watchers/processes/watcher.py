"""The watcher: takes the kernel's process events in their order and tells each end."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from typing import Any

from cgotel.clock import now
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
from cgotel.evidence import Gap, ProcessExit
from cgotel.kernel import tasks
from cgotel.kernel.proc_events import Ended, Executed, Forked, Happening, Overrun, ProcEvents, Renamed
from cgotel.kernel.source import state_of
from cgotel.kernel.taskstats import ExitRecord, ExitRecords
from cgotel.watchers.attendance import EVERY_S, Attendance
from cgotel.watchers.processes.ends import End, Verdict, judge
from cgotel.watchers.processes.living import Life, Living

_KTHREADD = 2  # parent of all threads of the kernel
_MOST_RECORDS = 1 << 14
_CROWD = 500  # so many events at once: others need the processor more than we do
_REST = 2  # times what they took
_LEARN_NS = 2 * 10**9
_REFUSALS = {
    errno.EPROTONOSUPPORT: (
        State.ABSENT,
        "the kernel has no process connector",
        "none, but a kernel with CONFIG_CONNECTOR and CONFIG_PROC_EVENTS",
    ),
    errno.ECONNREFUSED: (
        State.ABSENT,
        "no process connector in this network namespace",
        "run on the host, or share its network namespace (--network=host)",
    ),
    errno.ETIMEDOUT: (
        State.MASKED,
        "the process connector is silent: not the host's pid and user namespaces, or no CONFIG_PROC_EVENTS",
        "run on the host, or share its namespaces (--pid=host --network=host, no user namespace)",
    ),
    errno.EPERM: (State.DENIED, "the process connector needs CAP_NET_ADMIN", "run as root"),
}


class ProcessesConfig(WatcherSettings, frozen=True):
    """``[watchers.processes]``."""

    peaks: bool = True
    """Whether to ask the kernel's accounting for the peak of each process's memory."""


class Processes(Watcher):
    """How each process ended: by which code or signal, in which cgroup, even if that is gone."""

    name = "processes"
    Config = ProcessesConfig
    needs = ("CAP_NET_ADMIN in the host's pid, user and network namespaces: the process connector",)

    config: ProcessesConfig

    def __init__(self, config: Any, roots: Roots, timeline: Timeline, bookmark: Bookmark) -> None:
        super().__init__(config, roots, timeline, bookmark)
        self._attendance = Attendance(self.name, timeline, bookmark)
        self._proc: str | None = roots.proc
        self._events: ProcEvents | None = None
        self._records: ExitRecords | None = None
        self._no_records: OSError | None = None
        self._living = Living(None, timeline)
        self._open_ends: dict[int, End] = {}
        self._left: dict[int, ExitRecord] = {}
        self._began_ns = 0
        self._heard_ns = 0
        self._missed_ns: int | None = None
        self._learnt_ns = -_LEARN_NS

    def start(self) -> None:
        try:
            self._events = ProcEvents()
        except OSError as error:
            failed = (State.FAILED, f"process connector: {error.strerror}", "")
            state, reason, remedy = _REFUSALS.get(error.errno or 0, failed)
            raise Unavailable(SourceStatus(self.name, state, reason, remedy)) from error
        self._began_ns = self.timeline.now()
        self._heard_ns = now().monotonic_ns
        self._proc = self.roots.proc if tasks.counts_as_host(self.roots.proc) else None
        self._living = Living(self._proc, self.timeline)
        self._living.learn()
        self._missed_ns = None
        if self.config.peaks:
            try:
                self._records = ExitRecords(self.roots.sys)
            except OSError as error:
                self._no_records = error

    def watch(self, report: Report, stop: Stop) -> None:
        events = self._started()
        report(self._attendance.absence(self._began_ns))
        try:
            while not stop.is_set():
                self._attendance.note()
                if stop.wait_for(events.fileno(), self._wait_s()):
                    self._hear(events, report, stop)
                self._look_again(report)
        finally:
            self._attendance.note(last=True)

    def sources(self) -> Iterator[SourceStatus]:
        if self._records is not None:
            yield SourceStatus(f"{self.name}.peaks", State.OK)
        elif (error := self._no_records) is not None:
            reason = f"taskstats: {error.strerror}: peaks of memory are not known"
            yield SourceStatus(f"{self.name}.peaks", state_of(error), reason, "run as root, on the host")
        if self._proc is None:
            reason = f"{self.roots.proc} is of another pid namespace: cgroups cannot be looked up"
            remedy = "share the host's pid namespace (--pid=host), or set HOST_PROC to the host's /proc"
            yield SourceStatus(f"{self.name}.proc", State.MASKED, reason, remedy)

    def close(self) -> None:
        for opened in (self._events, self._records):
            if opened is not None:
                opened.close()
        self._events = self._records = None
        self._open_ends.clear()
        self._left.clear()

    def _started(self) -> ProcEvents:
        assert self._events is not None, "watch() before start()"
        return self._events

    # What happens

    def _hear(self, events: ProcEvents, report: Report, stop: Stop) -> None:
        """Take what happened; after very much of it rest, while more waits, or is lost, in the kernel."""
        began_ns = now().monotonic_ns
        happened = events.read()
        self._take_records()
        for one in happened:
            self._take(one, report)
        if len(happened) >= _CROWD:
            stop.wait(_REST * (now().monotonic_ns - began_ns) / 1e9)

    def _take(self, one: Happening, report: Report) -> None:
        if isinstance(one, Overrun):
            if self._missed_ns is None:
                self._missed_ns = self._heard_ns
            self._living.forget()
            return
        self._heard_ns = one.time_ns
        if isinstance(one, Forked):
            if (open_end := self._open_ends.pop(one.pid, None)) is not None:
                self._tell(open_end.told, open_end.life, report)  # its pid is free: nothing of it is left
            began_ns = self.timeline.from_monotonic(one.time_ns)
            self._living.came(one.pid, one.parent, one.time_ns, began_ns)
        elif isinstance(one, Ended):
            self._ended(one, report)
        elif isinstance(one, Executed):
            if (open_end := self._open_ends.pop(one.pid, None)) is not None:
                self._living.back(open_end.life)
            self._living.executed(one.pid)
        elif isinstance(one, Renamed):
            self._living.renamed(one.pid, one.comm)

    def _ended(self, told: Ended, report: Report) -> None:
        if told.parent == _KTHREADD:
            self._living.ended(told.pid)
            return
        life = self._living.ended(told.pid)
        verdict = judge(self._proc, told.pid)
        if verdict is not Verdict.LIVES:
            self._living.look(life)
        if verdict is Verdict.ENDED:
            self._tell(told, life, report)
        else:
            end = self._open_ends[told.pid] = End(told, life)
            end.wait(now().monotonic_ns)

    def _recover(self, missed_ns: int, report: Report) -> None:
        """Events were lost: learn anew who lives, and say from when to when nothing is certain."""
        self._living.learn()
        self._missed_ns = None
        self._learnt_ns = now().monotonic_ns
        since_ns = self.timeline.from_monotonic(missed_ns)
        reason = "process events came faster than they were read, and some were lost"
        report(Gap(source=self.name, time_ns=self.timeline.now(), since_ns=since_ns, reason=reason))

    def _tell(self, told: Ended, life: Life, report: Report, noticed_ns: int | None = None) -> None:
        """Report an end; ``noticed_ns`` where it came long after that of the first thread."""
        signal = told.status & 0x7F
        known = noticed_ns is None
        left = self._left.pop(told.pid, None)
        report(
            ProcessExit(
                source=self.name,
                time_ns=self.timeline.from_monotonic(told.time_ns if noticed_ns is None else noticed_ns),
                uncertainty_ns=0 if known else 10**9,
                cgroup=life.cgroup,
                pid=told.pid,
                comm=life.comm or (tasks.text(left.comm) if left else ""),
                parent_pid=told.parent,
                code=told.status >> 8 & 0xFF if known and not signal else None,
                signal=signal if known and signal else None,
                core=known and bool(told.status & 0x80),
                began_ns=life.began_ns,
                peak_rss=left.peak if left else None,
            )
        )

    # What is due

    def _wait_s(self) -> float:
        """How long there is nothing to do but to listen."""
        dues = [end.due_ns for end in self._open_ends.values()]
        if (look_ns := self._living.next_look_ns()) is not None:
            dues.append(look_ns)
        if self._missed_ns is not None:
            dues.append(self._learnt_ns + _LEARN_NS)
        if not dues:
            return EVERY_S
        return min(EVERY_S, max(0.0, (min(dues) - now().monotonic_ns) / 1e9))

    def _look_again(self, report: Report) -> None:
        now_ns = now().monotonic_ns
        self._living.look_at_young(now_ns)
        if self._missed_ns is not None and now_ns >= self._learnt_ns + _LEARN_NS:
            self._recover(self._missed_ns, report)
        for pid, end in list(self._open_ends.items()):
            if end.due_ns > now_ns:
                continue
            verdict = judge(self._proc, pid)
            if verdict is Verdict.ENDED:
                del self._open_ends[pid]
                self._tell(end.told, end.life, report, None if end.is_sudden(now_ns) else now_ns)
            elif verdict is Verdict.LIVES and not end.is_sudden(now_ns):
                del self._open_ends[pid]
                self._living.back(end.life)
            else:
                end.wait(now_ns)

    def _take_records(self) -> None:
        """Whatever ended has left its record before its end was told (kernel/exit.c, do_exit)."""
        if self._records is None:
            return
        for record in self._records.read():
            self._left[record.pid] = record
        while len(self._left) > _MOST_RECORDS:  # of threads, whose end nobody tells
            del self._left[next(iter(self._left))]
