"""Why a source gives nothing: the one table from errno to a state.

"Not there", "not allowed" and "switched off" are different answers, and none of them is zero.
"""

from __future__ import annotations

import enum
import errno
from dataclasses import dataclass


class State(enum.StrEnum):
    """The state of one source."""

    OK = "ok"
    ABSENT = "absent"  # this kernel, or this cgroup, has no such file
    DENIED = "denied"  # it exists; the permission is missing
    MASKED = "masked"  # it is hidden: a container's masked path, a missing mount
    OFF = "off"  # it exists and is switched off (psi=0, cgroup.pressure=0)
    GONE = "gone"  # it was there and its owner has ended
    FAILED = "failed"  # anything else: the reason says what


_BY_ERRNO = {
    errno.ENOENT: State.ABSENT,
    errno.ENOTDIR: State.ABSENT,
    errno.EACCES: State.DENIED,
    errno.EPERM: State.DENIED,
    errno.EOPNOTSUPP: State.OFF,  # kernel/sched/psi.c: psi_show() while PSI is disabled
    errno.ENODEV: State.GONE,  # kernel/cgroup: the cgroup of an open file was removed
    errno.ESRCH: State.GONE,  # fs/proc: the process of an open file has ended
}


def state_of(error: OSError) -> State:
    """The state that an error of open(2) or read(2) stands for."""
    return _BY_ERRNO.get(error.errno or 0, State.FAILED)


@dataclass(frozen=True, slots=True)
class SourceStatus:
    """What became of one source: its state, and for all but ``ok`` why and what to do about it."""

    name: str
    state: State
    reason: str = ""
    remedy: str = ""


class Unavailable(Exception):  # noqa: N818 - a state, not a fault
    """A source, or a whole collector, cannot serve here."""

    def __init__(self, status: SourceStatus) -> None:
        super().__init__(status.reason or status.state.value)
        self.status = status
