"""The kernel's log as records: /dev/kmsg (Documentation/ABI/testing/dev-kmsg, kernel/printk/printk.c).

A record is ``PRIORITY,SEQUENCE,MICROSECONDS,FLAGS[,MORE];TEXT`` and a newline; lines that follow with a
leading space are a dictionary that nobody needs here. PRIORITY is facility and level as in syslog;
facility 0 is the kernel, which no writer of /dev/kmsg can claim. Everything in TEXT that is not
printable ASCII, and the backslash, comes as ``\\xNN``.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
from collections.abc import Iterator
from typing import NamedTuple

from cgotel.kernel.formats import whole

KERNEL = 0
"""The facility of what the kernel itself says."""

_LARGEST = 16384  # 1 KiB of text at most, four bytes for each when all is escaped, and a dictionary
_DEVICE = os.makedev(1, 11)  # Documentation/admin-guide/devices.txt
_ESCAPE = re.compile(rb"\\x([0-9a-f]{2})")


class Record(NamedTuple):
    """One record. ``text`` is escaped as it came (`unescaped`); ``stamp_us`` is the kernel's local clock.

    ``continued``: a fragment of a longer line that could not be appended to its beginning, because
    another CPU had printed in between or the record was full. ``caller`` tells tasks apart
    (CONFIG_PRINTK_CALLER), empty on most kernels.
    """

    sequence: int
    stamp_us: int
    facility: int
    continued: bool
    caller: bytes
    text: bytes


def parse(data: bytes) -> Record | None:
    """One record as read(2) gave it; None for what is none, or not a whole one."""
    head, semicolon, rest = data.partition(b";")
    text, newline, _ = rest.partition(b"\n")
    fields = head.split(b",")
    if not semicolon or not newline or len(fields) < 4:
        return None
    priority, sequence, stamp = whole(fields[0]), whole(fields[1]), whole(fields[2])
    if priority is None or sequence is None or stamp is None:
        return None
    caller = next((more[7:] for more in fields[4:] if more.startswith(b"caller=")), b"")
    return Record(sequence, stamp, priority >> 3, fields[3] == b"c", caller, text)


def unescaped(text: bytes) -> str:
    """What was printed. Bytes that are no UTF-8 stay escaped, so that the text can be stored anywhere."""
    if b"\\" in text:
        text = _ESCAPE.sub(lambda found: bytes((int(found[1], 16),)), text)
    return text.decode("utf-8", "backslashreplace")


class NotTheLog(Exception):  # noqa: N818 - a state, not a fault
    """The file is there and is something else: a container's mask, most often /dev/null or a console."""


class Kmsg:
    """An open /dev/kmsg that starts at the oldest record the kernel still has, and never blocks."""

    def __init__(self, descriptor: int) -> None:
        self._fd = descriptor

    @classmethod
    def open(cls, path: str) -> Kmsg:
        """Open the device (a FIFO serves as well: one packet a record).

        Raises OSError (EPERM: kernel.dmesg_restrict wants CAP_SYSLOG) and `NotTheLog`.
        """
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
        found = os.fstat(fd)
        if stat.S_ISFIFO(found.st_mode) or (stat.S_ISCHR(found.st_mode) and found.st_rdev == _DEVICE):
            return cls(fd)
        os.close(fd)
        raise NotTheLog(path)

    def fileno(self) -> int:
        """Readable when there are records to read."""
        return self._fd

    def read(self) -> Iterator[bytes]:
        """Every record that is there now, raw, oldest first.

        What the kernel has overwritten before it was read is missing from the sequence numbers.
        Raises OSError when the device is lost.
        """
        while True:
            try:
                data = os.read(self._fd, _LARGEST)
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in (errno.EPIPE, errno.EINVAL):  # overwritten; larger than the buffer
                    continue
                raise
            if not data:
                raise OSError(errno.ENODATA, "the kernel log has ended")
            yield data

    def rewind(self) -> None:
        """Back to the oldest record; a FIFO has none."""
        with contextlib.suppress(OSError):
            os.lseek(self._fd, 0, os.SEEK_SET)

    def close(self) -> None:
        """Give the descriptor back. May be called twice."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
