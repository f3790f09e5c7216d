"""Evidence kept for a while, found again by what it is about."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Hashable, Iterable, Iterator

from cgotel.evidence import (
    AnyEvidence,
    ForkRejected,
    Gap,
    GpuMemory,
    GpuState,
    GpuXid,
    HostMemory,
    HostState,
    MemoryEvents,
    MemoryUse,
    PidsEvents,
    ProcessExit,
    Signal,
    UserspaceOom,
    Workload,
)

_SECOND = 1_000_000_000
_HOST_WIDE = (Gap, HostMemory, HostState, GpuXid, GpuMemory, GpuState)
_OF_ANCESTORS = (MemoryEvents, PidsEvents, ForkRejected, UserspaceOom, MemoryUse)
"""What bears on all below; of processes that live in an ancestor itself nothing does."""
_MOST_ANCESTORS = 64
_MOST_OF_A_KIND = 500


class Shelf:
    """The evidence of the last ``keep_s`` seconds, at most ``most`` pieces, the oldest dropped first.

    What a piece is about: the cgroup and each of its ancestors, processes, a workload by its id and
    by its name, or the host as a whole.
    """

    def __init__(self, keep_s: float = 900.0, most: int = 100_000) -> None:
        self._keep_ns = int(keep_s * _SECOND)
        self._most = most
        self._all: deque[tuple[AnyEvidence, tuple[Hashable, ...]]] = deque()
        self._by_subject: dict[Hashable, AnyEvidence | deque[AnyEvidence]] = {}  # most have one piece
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._all)

    def add(self, piece: AnyEvidence) -> None:
        """Keep a piece."""
        subjects = tuple(dict.fromkeys(_subjects(piece)))
        self._all.append((piece, subjects))
        for subject in subjects:
            kept = self._by_subject.get(subject)
            if kept is None:
                self._by_subject[subject] = piece
            elif isinstance(kept, deque):
                kept.append(piece)
            else:
                self._by_subject[subject] = deque((kept, piece))
        if len(self._all) > self._most:
            self._drop()
            self.dropped += 1

    def expire(self, now_ns: int) -> None:
        """Let go of what came in too long ago; a stamp of the future does not keep anything for ever."""
        while self._all and self._all[0][0].time_ns < now_ns - self._keep_ns:
            self._drop()

    def about(self, workload: Workload) -> Iterator[AnyEvidence]:
        """Everything that may bear on a workload: each piece once, in the order in which it came."""
        found: dict[int, AnyEvidence] = {}
        for subject in _subjects_of(workload):
            for piece in self._on(subject):
                found[id(piece)] = piece
        for path in _above(workload):
            for piece in self._on(("at", path)):
                if isinstance(piece, _OF_ANCESTORS):
                    found[id(piece)] = piece
        for signal in self._signals_to_members(list(found.values())):
            found[id(signal)] = signal
        return iter(found.values())

    def _signals_to_members(self, found: list[AnyEvidence]) -> Iterator[Signal]:
        """Signals to processes of which only the end told where they lived."""
        for piece in found:
            if isinstance(piece, ProcessExit) and piece.signal is not None:
                for sent in self._on(("pid", piece.pid)):
                    if isinstance(sent, Signal) and abs(sent.time_ns - piece.time_ns) < _SECOND:
                        yield sent

    def _drop(self) -> None:
        piece, subjects = self._all.popleft()
        for subject in subjects:
            kept = self._by_subject[subject]
            if isinstance(kept, deque):
                kept.popleft()
            if kept is piece or not kept:
                del self._by_subject[subject]

    def _on(self, subject: Hashable) -> Iterable[AnyEvidence]:
        kept = self._by_subject.get(subject, ())
        return kept if isinstance(kept, deque | tuple) else (kept,)


def nearest(pieces: Iterable[AnyEvidence], workload: Workload, ended_ns: int) -> tuple[AnyEvidence, ...]:
    """Of each kind those nearest to an end, in the order in which they came; of its main process all.

    A workload may end thousands of processes before it ends itself, and they must crowd out neither
    the one request that came before nor a gap.
    """
    by_kind: dict[type, list[tuple[int, int, AnyEvidence]]] = {}
    for number, piece in enumerate(pieces):
        main = workload.pid is not None and getattr(piece, "pid", None) == workload.pid
        distance_ns = -1 if main else _distance_ns(piece, ended_ns)
        by_kind.setdefault(type(piece), []).append((distance_ns, number, piece))
    kept: list[tuple[int, int, AnyEvidence]] = []
    for found in by_kind.values():
        few = len(found) <= _MOST_OF_A_KIND
        kept += found if few else heapq.nsmallest(_MOST_OF_A_KIND, found, key=lambda one: one[:2])
    return tuple(piece for _, _, piece in sorted(kept, key=lambda one: one[1]))


def _distance_ns(piece: AnyEvidence, ended_ns: int) -> int:
    if isinstance(piece, Gap) and piece.since_ns <= ended_ns <= piece.time_ns:
        return 0
    return abs(piece.time_ns - ended_ns)


def _subjects(piece: AnyEvidence) -> Iterator[Hashable]:
    if isinstance(piece, _HOST_WIDE):
        yield "host"
    if piece.cgroup is not None:
        yield "at", piece.cgroup
        yield from (("below", path) for path in lineage(piece.cgroup))
    pid = getattr(piece, "pid", None)
    if pid is not None:
        yield "pid", pid
    workload = getattr(piece, "workload", None)
    if isinstance(workload, Workload):
        yield "id", workload.id
        if workload.name:
            yield "name", workload.name
        if workload.cgroup:
            yield "below", workload.cgroup


def _subjects_of(workload: Workload) -> Iterator[Hashable]:
    yield "host"
    yield "id", workload.id
    if workload.name:
        yield "name", workload.name
    if workload.pid is not None:
        yield "pid", workload.pid
    if workload.cgroup:
        yield "below", workload.cgroup


def _above(workload: Workload) -> Iterator[str]:
    return lineage(workload.cgroup) if workload.cgroup else iter(())


def lineage(path: str) -> Iterator[str]:
    """A cgroup and its ancestors, up to the root: ``/a/b``, ``/a``, ``/``."""
    for _ in range(_MOST_ANCESTORS):
        yield path
        if path in ("/", ""):
            return
        path = path.rpartition("/")[0] or "/"
