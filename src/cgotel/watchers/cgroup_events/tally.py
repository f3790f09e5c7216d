"""What one events file counted, and what of it is still to be told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

Counts: TypeAlias = Mapping[str, int]

NOTHING: Counts = {}
_URGENT = ("oom", "oom_kill", "oom_group_kill")


class Tally:
    """The counters of one file: as they were told last, and as they were seen last.

    ``since_ns`` is the last look at which there was nothing to tell, ``first_ns`` the first at which
    there was, ``seen_ns`` the last one of all; ``told_ns`` the one up to which all is told. ``heard``:
    the kernel gave notice of what is to be told, right after it happened.
    """

    __slots__ = ("_seen", "_told", "first_ns", "heard", "seen_ns", "since_ns", "told_ns")

    def __init__(self, told: Counts, since_ns: int) -> None:
        self._told = self._seen = told
        self.since_ns = self.seen_ns = self.told_ns = since_ns
        self.first_ns: int | None = None
        self.heard = True

    @property
    def seen(self) -> Counts:
        """The counters at the last look."""
        return self._seen

    @property
    def rose(self) -> dict[str, int]:
        """By how much each counter rose that did, since it was told last."""
        if self._seen is self._told:
            return {}
        told = self._told
        return {key: n - told.get(key, 0) for key, n in self._seen.items() if n > told.get(key, 0)}

    @property
    def urgent(self) -> bool:
        """Whether the kernel gave up reclaiming, or killed: worth telling at once."""
        seen, told = self._seen, self._told
        return seen is not told and any(seen.get(key, 0) > told.get(key, 0) for key in _URGENT)

    def see(self, counts: Counts, now_ns: int, heard: bool) -> None:
        """Take what the file says now, because of a notice or just so.

        Counters fall where the file begins to count something else (its controller was taken away and
        given back, the hierarchy remounted with other options): nothing is told of such a step.
        """
        if any(n < self._seen.get(key, 0) or n < self._told.get(key, 0) for key, n in counts.items()):
            self._told = counts
            self.told_ns = now_ns
        changed = counts != self._seen
        self._seen = counts
        self.seen_ns = now_ns
        if not self.rose:
            self.since_ns = now_ns
            self.first_ns = None
            self.heard = True
        elif changed or self.first_ns is None:
            self.heard = self.heard and heard
            self.first_ns = now_ns if self.first_ns is None else self.first_ns

    def tell(self) -> None:
        """All that was seen has been told."""
        self._told = self._seen
        self.since_ns = self.told_ns = self.seen_ns
        self.first_ns = None
        self.heard = True
