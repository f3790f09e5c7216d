"""Which results of a probe are worth telling: changes, failures, and what is near them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from cgotel.evidence import ProbeResult

_NEAR = 3


class History:
    """The results of one probe, of which a healthy one's are seldom told.

    Told are the first result, every change, the ``_NEAR`` good results before a failure and after it, and
    failures: each until ``threshold`` + 10 in a row, and from then on the 2nd, 4th, 8th, ... of them.
    """

    def __init__(self, threshold: int) -> None:
        self.failures = 0
        self._each = threshold + 10
        self._held: deque[ProbeResult] = deque(maxlen=_NEAR)
        self._to_tell = 1

    def add(self, result: ProbeResult) -> Iterator[ProbeResult]:
        """What is to be told now, the oldest first."""
        if result.ok:
            yield from self._add_good(result)
            return
        self.failures = result.failures or self.failures + 1
        while self._held:
            yield self._held.popleft()
        if self.failures <= self._each or (self.failures - self._each).bit_count() == 1:
            yield result

    def _add_good(self, result: ProbeResult) -> Iterator[ProbeResult]:
        if self.failures:
            self.failures = 0
            self._to_tell = 1 + _NEAR
        if self._to_tell:
            self._to_tell -= 1
            yield result
        else:
            self._held.append(result)
