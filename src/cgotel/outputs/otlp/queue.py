"""Requests that wait for a receiver."""

from __future__ import annotations

from collections import deque

from cgotel.outputs.otlp.batch import Batch


class BatchQueue:
    """First in, first out; what does not fit into ``limit`` bytes pushes the oldest out.

    The newest request is kept whatever its size. Not safe for threads: its owner holds the lock.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._waiting: deque[Batch] = deque()
        self.size = 0
        """Bytes in all, as kept."""

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def items(self) -> int:
        """Points or log records in all."""
        return sum(batch.items for batch in self._waiting)

    def put(self, batch: Batch) -> int:
        """Add one at the end; returns the number of items that had to go."""
        self._waiting.append(batch)
        self.size += len(batch.packed)
        dropped = 0
        while self.size > self._limit and len(self._waiting) > 1:
            oldest = self._pop()
            oldest.settle(False)
            dropped += oldest.items
        return dropped

    def take(self, most: int) -> Batch:
        """The oldest, joined with those after it to at most ``most`` items."""
        taken = [self._pop()]
        items = taken[0].items
        while self._waiting and items + self._waiting[0].items <= most:
            taken.append(self._pop())
            items += taken[-1].items
        try:
            return Batch.merged(taken)
        except BaseException:
            self.give_back(*taken)
            raise

    def give_back(self, *batches: Batch) -> None:
        """Put back what was taken, in its order, before all others."""
        self._waiting.extendleft(reversed(batches))
        self.size += sum(len(batch.packed) for batch in batches)

    def clear(self) -> None:
        """Let go of everything."""
        for batch in self._waiting:
            batch.settle(False)
        self._waiting.clear()
        self.size = 0

    def _pop(self) -> Batch:
        batch = self._waiting.popleft()
        self.size -= len(batch.packed)
        return batch
