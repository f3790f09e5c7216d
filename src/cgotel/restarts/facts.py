"""Questions to a case, answered from its evidence: the vocabulary of the rules.

Each answer is the evidence itself, so that a rule can show what it saw. "Near the end" means near
enough for one to have brought about the other, the uncertainty of both stamps allowed for.
"""

from __future__ import annotations

import signal as signals
from collections.abc import Callable
from functools import cached_property
from typing import TypeVar

from cgotel.evidence import (
    Evidence,
    Gap,
    MemoryEvents,
    OomKill,
    OomMark,
    ProcessExit,
    RuntimeAction,
    Signal,
    UnitResult,
)
from cgotel.restarts.case import Case

E = TypeVar("E", bound=Evidence)

SECOND = 1_000_000_000
BEFORE_S = 3.0
AFTER_S = 1.5
MOST_UNCERTAIN_NS = 5 * SECOND
SIGKILL = int(signals.SIGKILL)

RUNTIME_SENDERS = frozenset(("runc", "crun", "kata-runtime", "runsc", "youki", "dockerd", "conmon"))
RUNTIMES = frozenset(("docker", "podman", "containerd", "cri"))


def inside(path: str | None, cgroup: str | None) -> bool:
    """Whether a path is a cgroup or lies below it (on borders of ``/``)."""
    if not path or not cgroup:
        return False
    return path == cgroup or path.startswith(f"{cgroup.rstrip('/')}/")


class Facts:
    """One case, ready to be asked."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.exit = case.exit
        self.workload = case.exit.workload
        self.end_ns = case.exit.ended_ns
        self._latest_ns = self.end_ns + int(60 * SECOND)

    def all(self, kind: type[E], fits: Callable[[E], bool] = lambda _: True) -> list[E]:
        """Every piece of a kind that belongs to this run, in the order of time."""
        began = self.exit.began_ns
        slack = self.exit.uncertainty_ns + SECOND
        return sorted(
            (
                e
                for e in self.case.evidence
                if isinstance(e, kind)
                and (began is None or e.time_ns + e.uncertainty_ns + slack >= began)
                and e.time_ns - e.uncertainty_ns <= self._latest_ns
                and fits(e)
            ),
            key=lambda e: e.time_ns,
        )

    def near_end(
        self,
        kind: type[E],
        fits: Callable[[E], bool] = lambda _: True,
        before_s: float = BEFORE_S,
        after_s: float = AFTER_S,
    ) -> list[E]:
        """Every piece of a kind from so long before the end to so long after it."""
        return self.all(kind, lambda e: self.is_near(e, before_s, after_s) and fits(e))

    def is_near(self, piece: Evidence, before_s: float = BEFORE_S, after_s: float = AFTER_S) -> bool:
        """Whether a piece may have happened that near to the end."""
        slack = piece.uncertainty_ns + self.exit.uncertainty_ns
        return -before_s * SECOND - slack <= piece.time_ns - self.end_ns <= after_s * SECOND + slack

    def own(self, cgroup: str | None) -> bool:
        """Whether a cgroup is the workload's, or below it."""
        return inside(cgroup, self.workload.cgroup)

    def above(self, cgroup: str | None) -> bool:
        """Whether a cgroup is a true ancestor of the workload's."""
        return cgroup != self.workload.cgroup and inside(self.workload.cgroup, cgroup)

    def is_main(self, pid: int | None) -> bool:
        """Whether this is the main process."""
        return pid is not None and pid == self.main_pid

    @cached_property
    def main_pid(self) -> int | None:
        """The main process, as its supervisor told at the start.

        A run may be over before anyone could ask: then it is the last process to leave its cgroup, since
        that takes all others of its pid namespace along, if its end is the one that was reported.
        """
        if self.workload.pid is not None:
            return self.workload.pid
        members = self.near_end(ProcessExit, lambda e: self.own(e.cgroup))
        return members[-1].pid if members and self._is_as_reported(members[-1]) else None

    def _is_as_reported(self, e: ProcessExit) -> bool:
        code = self.exit.code
        return code is None or code == e.code or (e.signal is not None and code == 128 + e.signal)

    @cached_property
    def main_exit(self) -> ProcessExit | None:
        """How the main process ended, as the kernel told whoever waited for it."""
        main = self.near_end(ProcessExit, lambda e: self.is_main(e.pid), 30, 5)
        return main[-1] if main else None

    @cached_property
    def unit(self) -> UnitResult | None:
        """systemd's account of this run, and of no other of the same unit."""
        told = self.near_end(UnitResult, self._is_of_this_run, 30, 10)
        return min(told, key=lambda e: abs(e.time_ns - self.end_ns), default=None)

    def _is_of_this_run(self, e: UnitResult) -> bool:
        mine = self.workload
        if e.workload.id != mine.id and not (mine.cgroup and e.workload.cgroup == mine.cgroup):
            return False
        return e.workload.pid is None or mine.pid is None or e.workload.pid == mine.pid

    @cached_property
    def signal(self) -> int | None:
        """The signal that truly ended the main process; None if none did, or nobody knows."""
        if self.main_exit is not None:
            return self.main_exit.signal
        if self.unit is not None and self.unit.signal is not None:
            return self.unit.signal
        return self.exit.signal

    @cached_property
    def code(self) -> int | None:
        """The code with which the main process truly ended itself; None if it did not, or nobody knows.

        A runtime's code above 128 may stand for a signal: it says nothing here.
        """
        if self.main_exit is not None:
            return self.main_exit.code
        if self.unit is not None and (self.unit.code is not None or self.unit.signal is not None):
            return self.unit.code
        if self.exit.signal is not None or self.reported_code is None or self.reported_code > 128:
            return None
        return self.reported_code

    @property
    def reported_code(self) -> int | None:
        """The runtime's exit code, unless it is of its own making: 137 where its shim had died."""
        return None if self.shim_died else self.exit.code

    @cached_property
    def shim_died(self) -> bool:
        """containerd's shim died: what was left was killed, and nobody knows how it would have ended."""
        return any(e.action == "shim_died" and self.is_near(e, 10, 10) for e in self.actions)

    @property
    def reported_signal(self) -> int | None:
        """The signal that the runtime's exit code may stand for."""
        code = self.reported_code
        return code - 128 if code is not None and 128 < code < 128 + 65 else None

    def may_have_ended_by(self, number: int) -> bool:
        """Whether nothing that is known contradicts an end by this signal."""
        if self.signal is not None:
            return self.signal == number
        if self.main_exit is not None or self.code is not None:
            return False
        return self.reported_code is None or self.reported_signal == number

    @property
    def killed(self) -> bool:
        """Whether SIGKILL truly ended the main process."""
        return self.signal == SIGKILL

    @cached_property
    def oom_kills(self) -> list[OomKill]:
        """The kernel's OOM kills in this workload during this run."""
        return self.all(OomKill, lambda e: self.own(e.cgroup) or self.is_main(e.pid))

    @cached_property
    def oom_kills_of_main(self) -> list[OomKill]:
        """Those that took the main process.

        Where its pid was never learnt: a kill in its cgroup at the very end of a run that may have
        ended by SIGKILL.
        """
        if self.main_pid is not None:
            return [e for e in self.oom_kills if self.is_main(e.pid) and self.is_near(e, 30)]
        if not self.may_have_ended_by(SIGKILL):
            return []
        return [e for e in self.oom_kills if self.is_near(e)]

    @cached_property
    def main_marked(self) -> list[OomMark]:
        """The kernel marked the main process as a victim, and its SIGKILL came along with that."""
        return self.near_end(OomMark, lambda e: self.is_main(e.pid) and bool(self.kernel_signals), 30)

    @cached_property
    def kernel_signals(self) -> list[Signal]:
        """SIGKILL to the main process from the kernel itself."""
        return self.near_end(
            Signal, lambda e: self.is_main(e.pid) and e.signal == SIGKILL and e.code == 128, 30
        )

    @cached_property
    def counted_kills(self) -> list[MemoryEvents]:
        """``oom_kill`` rose in this workload's cgroup, near the end of the run."""
        return self.near_end(
            MemoryEvents, lambda e: self.own(e.cgroup) and e.rose.get("oom_kill", 0) > 0, 5, 5
        )

    @cached_property
    def counted_limits(self) -> list[MemoryEvents]:
        """``oom`` rose at a limit of its own or of an ancestor, near the end; the lowest first.

        Of an ancestor only its local counter: the hierarchical one also rises for a neighbour's limit.
        """
        rose = self.near_end(
            MemoryEvents,
            lambda e: (self.own(e.cgroup) or (e.local and self.above(e.cgroup))) and e.rose.get("oom", 0) > 0,
            5,
            5,
        )
        return sorted(rose, key=lambda e: (-len(e.cgroup or ""), not e.local))

    @cached_property
    def signals_to_main(self) -> list[Signal]:
        """Signals to the main process that can end it, from a process, near the end or before it."""
        return self.all(
            Signal,
            lambda e: (
                self.is_main(e.pid)
                and e.result != 1
                and e.code != 128
                and e.time_ns <= self.end_ns + int(AFTER_S * SECOND) + e.uncertainty_ns
            ),
        )

    @cached_property
    def final_signal(self) -> Signal | None:
        """The signal that ended the main process, with its sender."""
        near = [e for e in self.signals_to_main if e.signal == self.signal and self.is_near(e)]
        return near[0] if near else None

    @cached_property
    def told_signal(self) -> int | None:
        """The signal that ended a child, where the main process passed that on as 128 + N, as shells do."""
        return self.code - 128 if self.code is not None and 128 < self.code < 128 + 65 else None

    @cached_property
    def told_children(self) -> list[ProcessExit]:
        """The children whose end by a signal the main process may have passed on, the first to end first."""
        if self.told_signal is None:
            return []
        return self.near_end(
            ProcessExit,
            lambda e: self.own(e.cgroup) and not self.is_main(e.pid) and e.signal == self.told_signal,
        )

    def by_runtime(self, sent: Signal) -> bool:
        """Whether a signal came from the workload's supervisor, on somebody's order."""
        if self.own(sent.sender_cgroup):
            return False
        if self.workload.runtime == "systemd" and sent.sender_pid == 1:
            return True
        parent = sent.sender_parent
        return sent.sender_comm in RUNTIME_SENDERS or parent.startswith(("containerd-shim", "conmon"))

    @cached_property
    def actions(self) -> list[RuntimeAction]:
        """What was done to this run through its runtime; what came before it was done to another."""
        began = self.exit.began_ns or 0
        return self.all(
            RuntimeAction,
            lambda e: e.workload.id == self.workload.id and e.time_ns + e.uncertainty_ns >= began,
        )

    def silent(self, source: str) -> str | None:
        """Why a source was not heard around the end; None if it watched all the time."""
        if source in self.case.silent:
            return self.case.silent[source]
        for gap in self.case.evidence:
            if (
                isinstance(gap, Gap)
                and gap.source == source
                and gap.since_ns <= self.end_ns + int(AFTER_S * SECOND)
                and gap.time_ns >= self.end_ns - int(BEFORE_S * SECOND)
            ):
                return gap.reason
        return None

    @property
    def end_is_certain(self) -> bool:
        """Whether it is known well enough when the run ended."""
        return self.exit.uncertainty_ns <= MOST_UNCERTAIN_NS

    @cached_property
    def memory_excluded(self) -> bool:
        """The kernel log was read without a gap, and no OOM kill took anything of this run."""
        return self.silent("kernel_log") is None and not (
            self.oom_kills or self.main_marked or self.counted_kills
        )
