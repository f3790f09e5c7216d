"""One request on its way: serialised, compressed, and counted."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from cgotel.contract import Settled
from cgotel.outputs.otlp import wire

_LEVEL = 1
"""A nineteenth of the size for 0.2 µs a point; higher levels cost more than they save."""


class Record(NamedTuple):
    """One ResourceMetrics or ResourceLogs as it stands in a request, and how many items it holds."""

    data: bytes
    items: int


@dataclass(frozen=True, slots=True)
class Batch:
    """The records of one request, kept gzipped: a queue of them is small, and most are sent so."""

    packed: bytes
    counts: tuple[int, ...]
    """Items of each record."""
    settled: tuple[Settled, ...] = ()
    """Who wants to know what becomes of it: one a record, or nobody."""

    @classmethod
    def of(cls, records: Sequence[Record]) -> Batch:
        """A request of these records."""
        return cls._packing(b"".join([record.data for record in records]), tuple([r.items for r in records]))

    def settle(self, taken: bool) -> None:
        """Tell everyone who wants to know that it was taken (or refused for good), or that it was not."""
        for tell in self.settled:
            tell(taken)

    @classmethod
    def merged(cls, batches: Sequence[Batch]) -> Batch:
        """One request in place of several: serialised messages are joined by writing one after another."""
        if len(batches) == 1:
            return batches[0]
        counts = tuple([count for batch in batches for count in batch.counts])
        settled = tuple([tell for batch in batches for tell in batch.settled])
        return replace(cls._packing(b"".join([batch.body() for batch in batches]), counts), settled=settled)

    @classmethod
    def _packing(cls, body: bytes, counts: tuple[int, ...]) -> Batch:
        return cls(gzip.compress(body, _LEVEL, mtime=0), counts)

    @property
    def items(self) -> int:
        """Data points, or log records."""
        return sum(self.counts)

    def body(self) -> bytes:
        """The serialised request."""
        return gzip.decompress(self.packed)

    def halves(self) -> tuple[Batch, ...]:
        """Two requests in place of one; nothing if there is but one record."""
        if len(self.counts) < 2:
            return ()
        records = [Record(*pair) for pair in zip(wire.records(self.body()), self.counts, strict=True)]
        middle = len(records) // 2
        first, second = Batch.of(records[:middle]), Batch.of(records[middle:])
        return replace(first, settled=self.settled[:middle]), replace(second, settled=self.settled[middle:])


def batches(records: Iterable[Record], limit: int) -> Iterable[Batch]:
    """Requests of at most ``limit`` bytes before compression, or of a single larger record."""
    pending: list[Record] = []
    size = 0
    for record in records:
        if pending and size + len(record.data) > limit:
            yield Batch.of(pending)
            pending, size = [], 0
        pending.append(record)
        size += len(record.data)
    if pending:
        yield Batch.of(pending)
