"""OOM kills, put together from the lines of one report after another.

The kernel prints a report under one lock (oom_lock), so reports do not mix with each other, only with
lines of other kinds. A summary is believed of the very process that it names, by id, owner and
name. The kernel leaves out header and summary after ten in five seconds, never ``Killed process``:
such a victim's cgroup is not known, except where a whole group is killed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from cgotel.evidence import OomKill
from cgotel.watchers.kernel_log import oom_lines
from cgotel.watchers.kernel_log.line import NAME, SECOND, Line
from cgotel.watchers.kernel_log.oom_lines import NOWHERE, Constraint, Invoked, Killed, Place, Summary, Usage

_REPORT_NS = 10 * SECOND  # the lines of one report are not further apart, even on a slow console
_BURST = 10  # DEFAULT_RATELIMIT_BURST
_BURST_NS = 6 * SECOND  # DEFAULT_RATELIMIT_INTERVAL and a margin
_MOST_CHOSEN = 64


class Told(NamedTuple):
    """Evidence, and the sequence number of the record that it stands on."""

    sequence: int
    evidence: OomKill


class _Report(NamedTuple):
    """What was said before the kill: who asked, whose limit, who was chosen."""

    time_ns: int
    constraint: Constraint
    summary: Summary | None = None
    place: Place = NOWHERE
    invoked: Invoked | None = None
    trigger_pid: int | None = None
    usage: Usage | None = None

    def fits(self, kill: Killed) -> bool:
        """Whether nothing in the line of the kill contradicts it."""
        if kill.memcg is not None and kill.memcg != (self.constraint == "memcg"):
            return False
        return self.summary is None or kill.uid is None or kill.uid == self.summary.uid

    def place_of(self, kill: Killed) -> Place:
        return self.summary.place(kill.comm) if self.summary else self.place


class _Group(NamedTuple):
    time_ns: int
    cgroup: str | None
    lead: OomKill | None


class OomReports:
    """Takes the lines of the log in order. A kill that a next line may explain is held till then."""

    def __init__(self) -> None:
        self._headers: deque[int] = deque(maxlen=_BURST)
        self._blind_until_ns = 0
        self._held: Told | None = None
        self._reports: dict[int, _Report] = {}
        self._last: OomKill | None = None
        self._invoked: Invoked | None = None
        self._trigger_pid: int | None = None
        self._usage: Usage | None = None
        self._place = NOWHERE
        self._child: _Report | None = None
        self._group: _Group | None = None

    def __bool__(self) -> bool:
        """Whether a kill is held."""
        return self._held is not None

    def forget(self, time_ns: int) -> None:
        """Lines were lost before ``time_ns``: what was said does not belong to what follows."""
        self._held = None
        self._reports.clear()
        self._last = None
        self._blind_until_ns = time_ns + _BURST_NS
        self._begin(None)

    def flush(self) -> Iterator[Told]:
        """No further line has come: tell what is held."""
        if self._held is not None:
            yield self._held
            self._held = None

    def feed(self, line: Line) -> Iterator[Told]:
        """Take one line; kills come out in the order in which they were printed."""
        text = line.text
        if killed := oom_lines.killed(text):
            yield from self._kill(line, killed)
        elif group := oom_lines.group(text):
            yield from self._begin_group(line, group.cgroup)
        elif summary := oom_lines.summary(text):
            yield from self.flush()
            self._choose(line, summary)
        elif invoked := oom_lines.invoked(text):
            yield from self.flush()
            self._begin(invoked)
            self._headers.append(line.time_ns)
        elif chosen := oom_lines.chosen(text):
            yield from self.flush()
            self._choose_or_child(line, chosen)
        elif task_in := oom_lines.task_in(text):
            self._place = task_in.place
        elif usage := oom_lines.usage(text):
            self._usage = usage
        elif skipped := oom_lines.skipped(text):
            yield from self.flush()
            self._reports.pop(skipped.pid, None)
            self._last = None
        elif self._invoked and self._trigger_pid is None:
            self._trigger_pid = oom_lines.trigger_pid(text, self._invoked.comm)

    def _begin(self, invoked: Invoked | None) -> None:
        self._invoked = invoked
        self._trigger_pid = None
        self._usage = None
        self._place = NOWHERE
        self._child = None
        self._group = None

    def _choose(self, line: Line, summary: Summary) -> None:
        report = self._report(line, summary.constraint)._replace(summary=summary)
        self._begin(None)
        self._remember(summary.pid, report)

    def _choose_or_child(self, line: Line, chosen: oom_lines.Chosen) -> None:
        known = self._reports.get(chosen.pid)
        if known is not None and known.summary is not None and self._recent(known.time_ns, line):
            return  # 5.0 prints both lines
        constraint: Constraint = "memcg" if chosen.memcg else "unknown"
        report = self._report(line, constraint)._replace(place=self._place)
        self._begin(None)
        self._remember(chosen.pid, report)
        self._child = report._replace(place=Place(None, report.place.limit_cgroup))

    def _report(self, line: Line, constraint: Constraint) -> _Report:
        usage = self._usage if constraint == "memcg" else None
        return _Report(line.time_ns, constraint, None, NOWHERE, self._invoked, self._trigger_pid, usage)

    def _remember(self, pid: int, report: _Report) -> None:
        if len(self._reports) >= _MOST_CHOSEN:
            del self._reports[next(iter(self._reports))]
        self._reports[pid] = report

    def _kill(self, line: Line, killed: Killed) -> Iterator[Told]:
        yield from self.flush()
        report = self._reports.pop(killed.pid, None) or self._child
        self._child = None
        if report is not None and self._recent(report.time_ns, line) and report.fits(killed):
            self._group = None
            told = Told(line.sequence, _explained(line, killed, report))
        elif (group := self._group) and self._recent(group.time_ns, line):
            if group.lead is not None and group.lead.pid == killed.pid:
                return  # the lead is among the tasks of its group, and is named once more
            told = Told(line.sequence, self._member(line, killed, group))
        else:
            told = Told(line.sequence, _bare(line, killed))
        self._last = told.evidence
        if told.evidence.cgroup is None:
            self._held = told
        else:
            yield told

    def _begin_group(self, line: Line, cgroup: str | None) -> Iterator[Told]:
        lead = self._last
        if self._held is not None and lead is not None and cgroup is not None:
            lead = _with(lead, cgroup=cgroup)
            self._held = Told(self._held.sequence, lead)
        yield from self.flush()
        self._group = _Group(line.time_ns, cgroup, lead)
        self._last = None

    def _member(self, line: Line, killed: Killed, group: _Group) -> OomKill:
        """One more of a group, where it cannot be the only line that is left of another kill."""
        bare = _bare(line, killed)
        lead = group.lead
        if self._may_be_silent(line) or group.cgroup is None:
            return bare
        if lead is None or killed.memcg not in (None, lead.constraint == "memcg"):
            return _with(bare, cgroup=group.cgroup, group=True)
        return _with(
            bare, cgroup=group.cgroup, group=True,
            constraint=lead.constraint, limit_cgroup=lead.limit_cgroup, requested=lead.requested,
            trigger_pid=lead.trigger_pid, trigger_comm=lead.trigger_comm,
            usage=lead.usage, limit=lead.limit,
        )  # fmt: skip

    def _may_be_silent(self, line: Line) -> bool:
        """Whether the kernel may have killed just now without header and summary."""
        full = len(self._headers) == _BURST and line.time_ns - self._headers[0] < _BURST_NS
        return full or line.time_ns < self._blind_until_ns

    @staticmethod
    def _recent(time_ns: int, line: Line) -> bool:
        return line.time_ns - time_ns < _REPORT_NS


def _bare(line: Line, killed: Killed) -> OomKill:
    return OomKill(
        source=NAME, time_ns=line.time_ns, uncertainty_ns=line.uncertainty_ns,
        pid=killed.pid, comm=killed.comm, constraint="memcg" if killed.memcg else "unknown",
        anon_rss=killed.anon_rss, file_rss=killed.file_rss, shmem_rss=killed.shmem_rss,
        oom_score_adj=killed.oom_score_adj,
    )  # fmt: skip


def _explained(line: Line, killed: Killed, report: _Report) -> OomKill:
    cgroup, limit_cgroup = report.place_of(killed)
    invoked, usage = report.invoked, report.usage
    return _with(
        _bare(line, killed), cgroup=cgroup, limit_cgroup=limit_cgroup, constraint=report.constraint,
        trigger_pid=report.trigger_pid, trigger_comm=invoked.comm if invoked else "",
        requested=invoked.requested if invoked else False,
        usage=usage.usage if usage else None, limit=usage.limit if usage else None,
    )  # fmt: skip


def _with(kill: OomKill, **changed: object) -> OomKill:
    return msgspec.structs.replace(kill, **changed)
