"""A pipe whose reader may stop reading: whole batches or nothing, and never a wait without end."""

from __future__ import annotations

import fcntl
import os
import select
import stat
import time

from cgotel.contract import OutputEnded


class Pipe:
    """Writes batches to a descriptor, which it owns.

    A batch that the reader takes no byte of in time is dropped and counted. One that it took a part
    of is kept, and finished before anything else: what follows half a line would be read as its end.
    """

    def __init__(self, descriptor: int) -> None:
        self.dropped = 0
        """Batches that were not written."""
        self._descriptor = unblocked(descriptor)
        self._poll = select.poll()
        self._poll.register(self._descriptor, select.POLLOUT)
        self._rest = memoryview(b"")

    def write(self, batch: bytes, timeout_s: float) -> bool:
        """Write a batch, or drop it after so many seconds. Raises `OutputEnded` without a reader."""
        deadline = time.monotonic() + timeout_s
        if not self.finish(timeout_s):
            self.dropped += 1
            return False
        self._rest = memoryview(batch)
        self._advance(deadline)
        if len(self._rest) == len(batch) and batch:
            self._rest = memoryview(b"")
            self.dropped += 1
            return False
        return True

    def finish(self, timeout_s: float) -> bool:
        """Write what is left of a batch; whether nothing is left now."""
        self._advance(time.monotonic() + timeout_s)
        return not self._rest

    def close(self) -> None:
        """Close the descriptor. May be called twice."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _advance(self, deadline: float) -> None:
        while self._rest:
            try:
                self._rest = self._rest[os.write(self._descriptor, self._rest) :]
            except BlockingIOError:
                left_s = deadline - time.monotonic()
                if left_s <= 0 or not self._poll.poll(left_s * 1000):
                    return
            except BrokenPipeError as error:
                raise OutputEnded("nobody reads standard output") from error


def claim_standard_output() -> int:
    """A private descriptor of what standard output was, which from now on is standard error.

    Nothing that prints can reach the reader any more: not a plugin, not a C library.
    """
    mine = fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, 3)
    os.dup2(2, 1)
    return mine


def unblocked(descriptor: int) -> int:
    """The descriptor, or one in its place, whose writes do not block; it is the caller's no more.

    Blocking belongs to the open file description, which others may share (open(2)); /proc opens a
    pipe once more. Terminals and files stay as they are: nobody stops reading a file.
    """
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISFIFO(mode):
        try:
            again = os.open(f"/proc/self/fd/{descriptor}", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            os.set_blocking(descriptor, False)
        else:
            os.close(descriptor)
            return again
    elif stat.S_ISSOCK(mode):
        os.set_blocking(descriptor, False)
    return descriptor
