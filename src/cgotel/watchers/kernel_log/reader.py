"""From raw records to evidence: whole lines of the kernel, read by those who know them. No I/O."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cgotel.evidence import Evidence, Gap
from cgotel.kernel.kmsg import KERNEL, Record, unescaped
from cgotel.watchers.kernel_log import oneliners, xid
from cgotel.watchers.kernel_log.fragments import Fragments
from cgotel.watchers.kernel_log.line import NAME, Line
from cgotel.watchers.kernel_log.oom import OomReports
from cgotel.watchers.kernel_log.stamps import Stamps

# Nearly all of a log, the task tables of OOM reports included, is left aside by one look.
_OF_INTEREST = re.compile(
    rb"oom|OOM victim|Kill(?:ed)? process |^Task |^memory: usage |^CPU: |fork rejected|blocked |^NVRM: |^PM: "
    rb"|\]:? (?:segfault|trap |general protection|bad frame|unhandled)"
)
_WOKE = oneliners.WOKE.encode()


class Reader:
    """Takes records in the order of their numbers; evidence comes with the number that it stands on.

    ``after``: number and stamp of the last record that was read in an earlier life, to tell from the
    first one now whether any is missing in between.
    """

    def __init__(self, stamps: Stamps, after: tuple[int, int] | None = None) -> None:
        self._stamps = stamps
        self._fragments = Fragments()
        self._oom = OomReports()
        self._after = after
        self.last: Record | None = None

    def __bool__(self) -> bool:
        """Whether something is held that the next records may complete."""
        return bool(self._fragments) or bool(self._oom)

    def feed(self, record: Record) -> Iterator[tuple[int, Evidence]]:
        """Take one record."""
        yield from self._missing(record)
        self.last = record
        if record.facility != KERNEL:
            return
        if record.text == _WOKE:
            self._stamps.woke(record.stamp_us)
        for whole in self._fragments.feed(record):
            yield from self._read(whole)

    def flush(self) -> Iterator[tuple[int, Evidence]]:
        """Nothing more has come for a while: tell what is held."""
        for record in self._fragments.flush():
            yield from self._read(record)
        yield from self._oom.flush()

    def _read(self, record: Record) -> Iterator[tuple[int, Evidence]]:
        if not _OF_INTEREST.search(record.text):
            return
        line = Line(record.sequence, *self._stamps.at(record.stamp_us), unescaped(record.text))
        yield from self._oom.feed(line)
        for source in (oneliners, xid):
            for evidence in source.read(line):
                yield from self._oom.flush()
                yield line.sequence, evidence

    def _missing(self, record: Record) -> Iterator[tuple[int, Evidence]]:
        """Notice that records before this one were never seen, and forget what they may have changed."""
        if self.last is None:
            if record.sequence == 0:
                return
            known = self._after
        elif record.sequence != self.last.sequence + 1:
            yield from self.flush()
            known = self.last.sequence, self.last.stamp_us
        else:
            return
        time_ns, uncertainty_ns = self._stamps.at(record.stamp_us)
        self._oom.forget(time_ns)
        if known is not None and (count := record.sequence - known[0] - 1) > 0:
            yield record.sequence, Gap(
                source=NAME, time_ns=time_ns, uncertainty_ns=uncertainty_ns,
                since_ns=self._stamps.at(known[1])[0],
                reason=f"{count} record{'s' * (count != 1)} of the kernel log overwritten before being read",
            )  # fmt: skip
