"""A request to stop that can be waited for together with descriptors."""

from __future__ import annotations

import os
import select
import weakref


class Stop:
    """Set once, seen by all: by asking, by waiting, and as a descriptor that becomes readable.

    Safe to `set` from a signal handler and from any thread.
    """

    def __init__(self) -> None:
        self._fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._set = False
        weakref.finalize(self, os.close, self._fd)

    def set(self) -> None:
        """Ask everyone to stop."""
        self._set = True
        os.eventfd_write(self._fd, 1)

    def is_set(self) -> bool:
        """Whether anyone asked."""
        return self._set

    def fileno(self) -> int:
        """Readable from the moment on that it is set: for poll(2) and event loops."""
        return self._fd

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for it, for at most so many seconds; whether it is set."""
        if not self._set:
            poll = select.poll()
            poll.register(self._fd, select.POLLIN)
            poll.poll(None if timeout_s is None else timeout_s * 1000)
        return self._set

    def wait_for(self, descriptor: int, timeout_s: float | None = None) -> bool:
        """Wait until ``descriptor`` can be read, or there is something wrong with it.

        False when asked to stop, or when the time is up.
        """
        poll = select.poll()
        poll.register(descriptor, select.POLLIN | select.POLLPRI)
        poll.register(self._fd, select.POLLIN)
        ready = dict(poll.poll(None if timeout_s is None else timeout_s * 1000))
        return descriptor in ready and not self._set
