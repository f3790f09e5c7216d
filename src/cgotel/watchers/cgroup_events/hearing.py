"""Which cgroups are heard by inotify, and which have to be asked because its limits are used up.

The watches of fs.inotify.max_user_watches are shared by all that runs as one user. An agent that
runs as root and takes them all would leave none to systemd, the kubelet and the container runtimes;
so half of them is the most that is taken.
"""

from __future__ import annotations

import errno
import os

from cgotel.contract import SourceStatus, State
from cgotel.kernel.files import read_once
from cgotel.kernel.formats import single
from cgotel.kernel.notify import Notice, Notifications

_OF_A_USER = 8192  # the kernel's least for max_user_watches
_RETRIED_NS = 60 * 10**9


class Hearing:
    """Watches of directories, as many as may be taken."""

    def __init__(self, proc: str, most: int | None = None) -> None:
        self._limit = most if most is not None else _watches_of_a_user(proc) // 2
        self._used = 0
        self._why = ""
        self._remedy = ""
        self._refused_ns: int | None = None
        self._notifications: Notifications | None = None
        try:
            self._notifications = Notifications()
        except OSError as error:
            self._why = f"no inotify: {error.strerror}"
            if error.errno == errno.EMFILE:
                self._why = "fs.inotify.max_user_instances is used up"
                self._remedy = "sysctl -w fs.inotify.max_user_instances=1024"

    def fileno(self) -> int | None:
        """Readable when there is something to `read`; None where nothing can be heard."""
        return None if self._notifications is None else self._notifications.fileno()

    def listen(self, directory_fd: int, now_ns: int) -> int | None:
        """Hear of a directory from now on; the number of its watch, None where that cannot be had now."""
        if self._notifications is None:
            return None
        if self._used >= self._limit:
            self._refuse(f"half of fs.inotify.max_user_watches is {self._limit}", now_ns)
            return None
        if self._refused_ns is not None and now_ns - self._refused_ns < _RETRIED_NS:
            return None
        try:
            watch = self._notifications.watch(directory_fd)
        except OSError as error:
            used_up = error.errno == errno.ENOSPC
            why = "fs.inotify.max_user_watches is used up" if used_up else f"inotify: {error}"
            self._refuse(why, now_ns)
            return None
        self._used += 1
        self._refused_ns = None
        return watch

    def no_descriptors(self) -> None:
        """A cgroup cannot be heard because its files cannot be held open."""
        self._why = "the open files limit leaves no descriptors"
        self._remedy = "raise the hard limit of open files: ulimit -Hn, LimitNOFILE="

    def forget(self, watch: int) -> None:
        """Hear of a directory no more."""
        assert self._notifications is not None
        self._notifications.forget(watch)
        self._used -= 1
        self._refused_ns = None

    def read(self) -> list[Notice]:
        """What happened, in its order."""
        return [] if self._notifications is None else self._notifications.read()

    def status(self, name: str, polled: int, cgroups: int, interval_s: float) -> SourceStatus:
        """Whether so many cgroups of all have to be asked, and why."""
        if not polled:
            return SourceStatus(name, State.OK)
        where = f"{polled} of {cgroups} cgroups are asked every {interval_s:g} s"
        return SourceStatus(name, State.FAILED, f"{self._why}: {where}", self._remedy)

    def close(self) -> None:
        """Let go of all watches. May be called twice."""
        if self._notifications is not None:
            self._notifications.close()

    def _refuse(self, why: str, now_ns: int) -> None:
        self._why = why
        self._remedy = f"sysctl -w fs.inotify.max_user_watches={max(524288, 4 * self._limit)}"
        self._refused_ns = now_ns


def _watches_of_a_user(proc: str) -> int:
    try:
        return single(read_once(os.path.join(proc, "sys/fs/inotify/max_user_watches"))) or _OF_A_USER
    except OSError:
        return _OF_A_USER
