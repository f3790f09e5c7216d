"""Who lives now, where, and since when: what nobody can say of a process any more when it has ended."""

from __future__ import annotations

import sys
from collections import deque
from dataclasses import dataclass

from cgotel.contract import Timeline
from cgotel.kernel import tasks

_MOST = 1 << 16
_LOOK_AFTER_NS = (5 * 10**6, 20 * 10**6, 80 * 10**6, 320 * 10**6, 1280 * 10**6)


@dataclass(slots=True, eq=False)
class Life:
    """One process. ``cgroup`` is None where it is not known; ``began_ns`` is of the timeline."""

    pid: int
    began_ns: int | None = None
    cgroup: str | None = None
    comm: str = ""


class Living:
    """All processes by pid. A pid that is given again begins a new life.

    A process enters its cgroup between its fork and the execution of its program, and some later;
    so it is looked at when it executes, and a few times while it is young. ``proc`` None: nothing
    can be looked up.
    """

    def __init__(self, proc: str | None, timeline: Timeline) -> None:
        self._proc = proc
        self._timeline = timeline
        self._lives: dict[int, Life] = {}
        self._looks: tuple[deque[tuple[int, Life]], ...] = tuple(deque(maxlen=_MOST) for _ in _LOOK_AFTER_NS)

    def __len__(self) -> int:
        return len(self._lives)

    def forget(self) -> None:
        """Nothing is known any more: a pid may be another process's by now."""
        self._lives.clear()

    def learn(self) -> None:
        """Forget all, and look at who is there."""
        self.forget()
        if self._proc is None:
            return
        for pid in tasks.processes(self._proc):
            began_ns = tasks.began_ns(self._proc, pid)
            if began_ns is not None:
                began_ns = self._timeline.from_boottime(began_ns)
                life = self._lives[pid] = Life(pid, began_ns, comm=tasks.comm(self._proc, pid))
                self.look(life)

    def came(self, pid: int, parent: int, now_ns: int, began_ns: int) -> None:
        """A fork: it has its parent's name and cgroup until more is known."""
        life = Life(pid, began_ns)
        if (of := self._lives.get(parent)) is not None:
            life.cgroup, life.comm = of.cgroup, of.comm
        self._lives.pop(pid, None)
        self._lives[pid] = life
        if len(self._lives) > _MOST:
            del self._lives[next(iter(self._lives))]
        for looks, after_ns in zip(self._looks, _LOOK_AFTER_NS, strict=True):
            looks.append((now_ns + after_ns, life))

    def executed(self, pid: int) -> None:
        """A new program, mostly with another name, and in its cgroup by now."""
        life = self._lives.get(pid)
        if life is None:
            life = self._lives[pid] = Life(pid)
        if self._proc is not None:
            # Not found: it ended already. It may have been moved since its fork, by a runtime.
            life.cgroup, life.comm = tasks.cgroup(self._proc, pid), tasks.comm(self._proc, pid)

    def renamed(self, pid: int, comm: bytes) -> None:
        """It chose another name."""
        if (life := self._lives.get(pid)) is not None:
            life.comm = tasks.text(comm)

    def ended(self, pid: int) -> Life:
        """Who that was, with its cgroup as it is now where it is not reaped yet."""
        return self._lives.pop(pid, None) or Life(pid)

    def back(self, life: Life) -> None:
        """It has not ended after all."""
        self._lives.setdefault(life.pid, life)

    def look(self, life: Life) -> None:
        """Read its cgroup again; what was known stays where there is nothing to read."""
        if self._proc is not None and (found := tasks.cgroup(self._proc, life.pid)) is not None:
            life.cgroup = sys.intern(found)

    def next_look_ns(self) -> int | None:
        """When somebody is to be looked at, on the clock of `came`."""
        for looks in self._looks:
            while looks and self._lives.get(looks[0][1].pid) is not looks[0][1]:
                looks.popleft()
        return min((looks[0][0] for looks in self._looks if looks), default=None)

    def look_at_young(self, now_ns: int) -> None:
        """Read what is due; who has ended meanwhile costs nothing."""
        for looks in self._looks:
            while looks and looks[0][0] <= now_ns:
                _, life = looks.popleft()
                if self._lives.get(life.pid) is life:
                    self.look(life)
