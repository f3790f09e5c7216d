"""Lines that the kernel prints piece by piece (pr_cont), made whole.

A piece is appended to its line in the ring; where another CPU has printed in between, or the record
is full, it becomes a record of its own that is marked as a fragment. Few kernels say which task a
fragment belongs to, so it is taken only while a line is open that is known to miss its end. A
fragment alone is never read as a line: its text may be nothing but the name of somebody's cgroup.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from cgotel.kernel.kmsg import Record

# How lines begin that are printed in pieces, and what such a line has when it is whole.
_IN_PIECES = (
    (b"oom-kill:", re.compile(rb",pid=\d+,uid=\d+$")),
    (b"Tasks in ", re.compile(rb" are going to be killed due to memory\.oom\.group set$")),
    (b"Task in ", re.compile(rb" killed as a result of limit of /")),
    (b"cgroup: fork rejected by pids controller in ", re.compile(rb" in /")),
)
_LONGEST = 64 * 1024  # two paths of PATH_MAX, escaped, and room
_PATIENCE = 256  # records of others that may stand between the pieces


class Fragments:
    """Takes records of the kernel one by one and gives whole ones, each as soon as it is."""

    def __init__(self) -> None:
        self._open: Record | None = None
        self._end: re.Pattern[bytes] | None = None
        self._others = 0

    def __bool__(self) -> bool:
        """Whether a line is held that waits for its end."""
        return self._open is not None

    def feed(self, record: Record) -> Iterator[Record]:
        """Take one record; what comes out is whole, or will never be."""
        if record.continued:
            yield from self._append(record)
            return
        if end := _end_of(record.text):
            yield from self.flush()
            if end.search(record.text):
                yield record
            else:
                self._open, self._end, self._others = record, end, 0
            return
        self._others += 1
        if self._others > _PATIENCE:
            yield from self.flush()
        yield record

    def flush(self) -> Iterator[Record]:
        """Give up waiting for the end of a line."""
        if self._open is not None:
            yield self._open
            self._open = None

    def _append(self, piece: Record) -> Iterator[Record]:
        opened, end = self._open, self._end
        if opened is None or end is None or piece.caller != opened.caller:
            return
        self._open = opened._replace(text=opened.text + piece.text)
        if end.search(self._open.text) or len(self._open.text) > _LONGEST:
            yield from self.flush()


def _end_of(text: bytes) -> re.Pattern[bytes] | None:
    return next((end for beginning, end in _IN_PIECES if text.startswith(beginning)), None)
