"""Joins what is heard into exits, holds each open for a while, and lays its case before the rules.

Knows no clock: whoever asks says what time it is on the timeline of the evidence.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice

import msgspec

from cgotel.evidence import AnyEvidence, CgroupEmptied, ProcessExit, RunEnded, RunStarted, Workload
from cgotel.identity import identify
from cgotel.restarts.case import Case, Exit
from cgotel.restarts.ends import Ends
from cgotel.restarts.facts import inside
from cgotel.restarts.shelf import Shelf, lineage, nearest

SECOND = 1_000_000_000
_MOST_RUNS = 65_536
_MOST_PAST = 8_192
_PAST_S = 30.0
_TOGETHER_NS = 2 * SECOND
_TOLD_LATE_NS = 30 * SECOND  # Docker tells of an end when all is cleared away
_PLAIN_KINDS = frozenset(("container", "service", "machine", "job", "cgroup"))
_SPEAKERS = {"docker": "docker", "podman": "podman", "containerd": "containerd", "cri-o": "cri"}


@dataclass(frozen=True, slots=True)
class Restart:
    """A run that began where one of the same workload had ended before; ``case`` is of that end."""

    case: Case
    started: RunStarted


@dataclass(order=True, slots=True)
class _Pending:
    due_ns: int
    number: int
    exit: Exit = field(compare=False)
    successor: RunStarted | None = field(default=None, compare=False)


class Timeline:
    """What was heard, which runs there are, and which exits wait for late evidence.

    An exit is held open for ``settle_s`` seconds from when it was heard.
    """

    def __init__(self, settle_s: float = 3.0, shelf: Shelf | None = None) -> None:
        self._settle_ns = int(settle_s * SECOND)
        self._shelf = shelf or Shelf()
        self._runs: OrderedDict[str, RunStarted] = OrderedDict()
        self._pending: list[_Pending] = []
        self._waiting: dict[str, _Pending] = {}
        self._waiting_of: dict[tuple[str, str], list[_Pending]] = {}
        self._ends = Ends()
        self._told: OrderedDict[str, None] = OrderedDict()
        self._last: OrderedDict[tuple[str, str], Case] = OrderedDict()
        self._emptied: deque[tuple[int, str, CgroupEmptied]] = deque()
        self._emptied_below: dict[str, deque[int]] = {}
        self._empty: OrderedDict[str, None] = OrderedDict()
        self._restarts: list[Restart] = []
        self._opened: list[Exit] = []
        self._number = 0

    def hear(self, piece: AnyEvidence, now_ns: int) -> None:
        """Take one piece of evidence."""
        self._shelf.add(piece)
        if isinstance(piece, RunStarted):
            self._started(piece)
        elif isinstance(piece, RunEnded):
            self._ended(piece, now_ns)
        elif isinstance(piece, CgroupEmptied) and piece.cgroup is not None:
            self._left(piece.cgroup, piece, now_ns)

    def _left(self, path: str, piece: CgroupEmptied, now_ns: int) -> None:
        """The last process left a cgroup; that the empty directory is removed later is no other end."""
        if piece.removed and path in self._empty:
            del self._empty[path]
            return
        if not piece.removed:
            self._empty[path] = None
            while len(self._empty) > _MOST_RUNS:
                self._empty.popitem(last=False)
        self._emptied.append((now_ns + self._settle_ns, path, piece))
        for above in _above(path):
            self._emptied_below.setdefault(above, deque()).append(piece.time_ns)
        if len(self._emptied) > _MOST_RUNS:
            self._first_emptied()

    def _first_emptied(self) -> tuple[str, CgroupEmptied]:
        """Take out what emptied first."""
        _, path, piece = self._emptied.popleft()
        for above in _above(path):
            self._emptied_below[above].popleft()
            if not self._emptied_below[above]:
                del self._emptied_below[above]
        return path, piece

    def due(self, now_ns: int, silent: Mapping[str, str]) -> Iterator[Case | Restart]:
        """The cases that have settled by now, in the order of their exits, and the restarts.

        ``silent`` are the sources that cannot see, each with the reason.
        """
        self._adopt_plain(now_ns, silent)
        while self._pending and self._pending[0].due_ns <= now_ns:
            pending = heapq.heappop(self._pending)
            self._wait_no_more(pending)
            case = self._case(pending.exit, silent)
            self._keep(case)
            yield case
            if pending.successor is not None:
                yield Restart(case, pending.successor)
        while self._restarts:
            earlier = self._restarts.pop(0)
            again = self._case(earlier.case.exit, earlier.case.silent)
            known = {id(piece) for piece in again.evidence}
            kept = tuple(p for p in earlier.case.evidence if id(p) not in known)
            yield Restart(msgspec.structs.replace(again, evidence=kept + again.evidence), earlier.started)
        self._shelf.expire(now_ns)

    def opened(self, silent: Mapping[str, str]) -> Iterator[Case]:
        """The exits heard of since the last call that wait, each with the evidence so far: to be kept."""
        opened, self._opened = self._opened, []
        for exit_ in opened:
            if exit_.uid in self._waiting:
                yield self._case(exit_, silent)

    def reopen(self, exit_: Exit, now_ns: int) -> None:
        """An exit that was heard of in an earlier life and never judged; unless it was told again."""
        if exit_.uid not in self._told and exit_.uid not in self._waiting:
            self._open(exit_, now_ns + self._settle_ns)

    def next_due_ns(self) -> int | None:
        """When `due` has something to give, if nothing else is heard; None if it has not."""
        times = [self._pending[0].due_ns] if self._pending else []
        if self._emptied:
            times.append(self._emptied[0][0])
        return min(times) if times else None

    def _started(self, piece: RunStarted) -> None:
        self._runs[piece.workload.key] = piece
        self._runs.move_to_end(piece.workload.key)
        while len(self._runs) > _MOST_RUNS:
            self._runs.popitem(last=False)
        for pending in self._waiting_for(piece.workload):
            if piece.time_ns >= _began(pending.exit):
                pending.successor = pending.successor or piece
                return
        case = self._last.pop((piece.workload.runtime, piece.workload.title), None)
        if case is not None and piece.time_ns >= case.exit.ended_ns - case.exit.uncertainty_ns:
            self._restarts.append(Restart(case, piece))

    def _ended(self, piece: RunEnded, now_ns: int) -> None:
        run = self._runs.get(piece.workload.key)
        if run is not None and run.time_ns > piece.time_ns + piece.uncertainty_ns:
            run = None  # the next run has been heard of before this one's end
        exit_ = Exit(
            workload=_fuller(piece.workload, run.workload if run else None),
            ended_ns=piece.time_ns,
            uncertainty_ns=piece.uncertainty_ns,
            began_ns=piece.began_ns or (run.time_ns if run else None),
            code=piece.code,
            signal=piece.signal,
            started=piece.started,
            error=piece.error,
            past=now_ns - piece.time_ns > int(_PAST_S * SECOND),
            source=piece.source,
        )
        if run is not None:
            del self._runs[piece.workload.key]
        if (pending := self._waiting.get(exit_.uid)) is not None:
            self._wait_no_more(pending)
            pending.exit = exit_
            self._wait(pending)
            return
        if exit_.uid not in self._told:
            self._open(exit_, now_ns + self._settle_ns)

    def _open(self, exit_: Exit, due_ns: int) -> None:
        self._number += 1
        pending = _Pending(due_ns, self._number, exit_)
        heapq.heappush(self._pending, pending)
        self._wait(pending)
        self._opened.append(exit_)

    def _wait(self, pending: _Pending) -> None:
        """Let an exit be found by its uid, by its workload, and by the cgroup that it ended in."""
        exit_, workload = pending.exit, pending.exit.workload
        self._waiting[exit_.uid] = pending
        for key in _names(workload):
            self._waiting_of.setdefault(key, []).append(pending)
        if workload.cgroup:
            reach_ns = _TOGETHER_NS if workload.runtime == "cgroup" else _TOLD_LATE_NS
            self._ends.note(workload.cgroup, exit_.ended_ns, reach_ns, workload.id)

    def _wait_no_more(self, pending: _Pending) -> None:
        self._waiting.pop(pending.exit.uid, None)
        for key in _names(pending.exit.workload):
            self._waiting_of[key].remove(pending)
            if not self._waiting_of[key]:
                del self._waiting_of[key]

    def _waiting_for(self, workload: Workload) -> list[_Pending]:
        """The exits of a workload, or of one of its name, that have not settled."""
        return [pending for key in _names(workload) for pending in self._waiting_of.get(key, ())]

    def _case(self, exit_: Exit, silent: Mapping[str, str]) -> Case:
        evidence = nearest(self._shelf.about(exit_.workload), exit_.workload, exit_.ended_ns)
        return Case(exit=exit_, evidence=evidence, silent=dict(silent))

    def _keep(self, case: Case) -> None:
        self._told[case.exit.uid] = None
        self._last[case.exit.workload.runtime, case.exit.workload.title] = case
        while len(self._told) > _MOST_PAST:
            self._told.popitem(last=False)
        while len(self._last) > _MOST_PAST:
            self._last.popitem(last=False)

    def _adopt_plain(self, now_ns: int, silent: Mapping[str, str]) -> None:
        """A cgroup that emptied and that no runtime speaks for has ended, too."""
        while self._emptied and self._emptied[0][0] <= now_ns:
            path, piece = self._first_emptied()
            if self._ended_below(path, piece):
                continue  # what ended lived below: it has its own exit
            if _unspoken_for(path, silent) and not self._ends.cover(path, piece.time_ns):
                exit_ = self._plain_exit(path, piece)
                if exit_.uid not in self._told:
                    self._open(exit_, now_ns)

    def _ended_below(self, path: str, piece: CgroupEmptied) -> bool:
        later = self._emptied_below.get(path, ())
        return any(abs(time_ns - piece.time_ns) < _TOGETHER_NS for time_ns in later)

    def _plain_exit(self, path: str, piece: CgroupEmptied) -> Exit:
        workload = Workload(runtime="cgroup", id=path, name=_title(path), cgroup=path)
        until_ns = piece.time_ns + piece.uncertainty_ns + SECOND // 2
        exits = [
            e
            for e in self._shelf.about(workload)
            if isinstance(e, ProcessExit) and inside(e.cgroup, path) and e.time_ns <= until_ns
        ]
        last = max(exits, key=lambda e: e.time_ns, default=None)
        if last is None or abs(last.time_ns - piece.time_ns) > 10 * SECOND:
            return Exit(
                workload=workload,
                ended_ns=piece.time_ns,
                uncertainty_ns=piece.uncertainty_ns,
                source=piece.source,
            )
        return Exit(
            workload=msgspec.structs.replace(workload, pid=last.pid),
            ended_ns=last.time_ns,
            uncertainty_ns=last.uncertainty_ns,
            began_ns=last.began_ns,
            code=last.code,
            signal=last.signal,
            source=piece.source,
        )


def _above(path: str) -> Iterator[str]:
    return islice(lineage(path), 1, None)


def _began(exit_: Exit) -> int:
    return exit_.ended_ns - exit_.uncertainty_ns if exit_.started else exit_.ended_ns - SECOND


def _names(workload: Workload) -> Iterable[tuple[str, str]]:
    """What tells a workload from others: its id and, over redeployments, its name."""
    return dict.fromkeys(((workload.runtime, workload.id), (workload.runtime, workload.title)))


def _fuller(told: Workload, known: Workload | None) -> Workload:
    """What the end tells of the workload, and where it tells nothing, what its start told."""
    if known is None:
        return told
    gaps = {name: getattr(known, name) for name in told.__struct_fields__ if not getattr(told, name)}
    return msgspec.structs.replace(told, **gaps)


def _unspoken_for(path: str, silent: Mapping[str, str]) -> bool:
    identity = identify(path)
    if identity.kind not in _PLAIN_KINDS:
        return False
    runtime = str(identity.attributes.get("container.runtime.name", ""))
    speaker = _SPEAKERS.get(runtime, "systemd" if identity.kind == "service" else "")
    return not speaker or speaker in silent


def _title(path: str) -> str:
    identity = identify(path)
    for key in ("container.name", "systemd.unit.name", "container.id"):
        if name := identity.attributes.get(key):
            return str(name)
    return path
