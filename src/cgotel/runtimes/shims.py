"""When shims died: containerd gives the containers of a dead shim an exit code of its own making."""

from __future__ import annotations

import os
import select

from cgotel.contract import Roots, Timeline
from cgotel.runtimes.latest import Latest

_MOST = 256


class Shims:
    """Watches living shims by a descriptor each, and remembers when each was seen to be dead.

    A pid is one of our own namespace only where /proc is our own; elsewhere nothing is watched.
    """

    def __init__(self, roots: Roots, timeline: Timeline) -> None:
        self._ours = roots.proc == "/proc"
        self._timeline = timeline
        self._poll = select.epoll()
        self._living: dict[int, int] = {}
        self._died: Latest[int, int] = Latest(_MOST)

    def fileno(self) -> int:
        """Readable when a shim has died, or when what was added by `join` can be read."""
        return self._poll.fileno()

    def join(self, descriptor: int) -> None:
        """Let another descriptor wake whoever waits for shims."""
        self._poll.register(descriptor, select.EPOLLIN)

    def watch(self, pid: int) -> None:
        """Watch a shim from now on, where there is room for one more."""
        if not self._ours or pid in self._living.values() or len(self._living) >= _MOST or pid <= 1:
            return
        try:
            descriptor = os.pidfd_open(pid)
        except OSError:
            return
        self._died.pop(pid, None)
        self._living[descriptor] = pid
        self._poll.register(descriptor, select.EPOLLIN)

    def look(self) -> None:
        """See who died since the last look."""
        for descriptor, _ in self._poll.poll(0):
            pid = self._living.pop(descriptor, None)
            if pid is not None:
                self._died.put(pid, self._timeline.now())
                os.close(descriptor)

    def lives(self, pid: int) -> bool:
        """Whether a shim is watched, and lived at the last look."""
        return pid in self._living.values()

    def died_ns(self, pid: int) -> int | None:
        """When a shim was seen to be dead, None where that was not seen."""
        return self._died.get(pid)

    def close(self) -> None:
        """Let go of all descriptors. May be called twice."""
        self._poll.close()
        while self._living:
            os.close(self._living.popitem()[0])
