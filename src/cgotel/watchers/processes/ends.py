"""Whether the end of a process's first thread was the end of the process."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from cgotel.kernel import tasks
from cgotel.kernel.proc_events import Ended
from cgotel.watchers.processes.living import Life

_AT_ONCE_NS = 10**9
_LOOK_AFTER_NS = (5 * 10**6, 50 * 10**6, 500 * 10**6)


class Verdict(enum.Enum):
    """What /proc says of it."""

    ENDED = enum.auto()
    LIVES = enum.auto()  # the first thread has ended, or was replaced, and the process has not
    OPEN = enum.auto()


@dataclass(slots=True, eq=False)
class End:
    """An end that is to be confirmed: other threads were there when it was told.

    They end along with it (exit_group, a deadly signal), live on (pthread_exit in main), or one of
    them executes a program and takes the first one's place (fs/exec.c, de_thread).
    """

    told: Ended
    life: Life
    looks: int = 0
    due_ns: int = 0

    def wait(self, now_ns: int) -> None:
        """Set the time of the next look."""
        self.due_ns = now_ns + _LOOK_AFTER_NS[min(self.looks, len(_LOOK_AFTER_NS) - 1)]
        self.looks += 1

    def is_sudden(self, now_ns: int) -> bool:
        """Whether so little time has passed that all threads ended for one reason, at the time told."""
        return now_ns - self.told.time_ns < _AT_ONCE_NS


def judge(proc: str | None, pid: int) -> Verdict:
    """Look whether there is still a process behind a first thread that ended."""
    if proc is None or (condition := tasks.condition(proc, pid)) is None:
        return Verdict.ENDED
    if not condition.ended:
        return Verdict.LIVES
    return Verdict.OPEN if condition.threads > 1 else Verdict.ENDED
