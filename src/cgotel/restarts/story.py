"""One incident on one screen: what ended it, how sure, the evidence by time, and what to do."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import msgspec

from cgotel.evidence import (
    AnyEvidence,
    CgroupEmptied,
    Gap,
    HostMemory,
    MemoryEvents,
    MemoryUse,
    ProcessExit,
    RunStarted,
    UnitResult,
)
from cgotel.restarts.case import Case
from cgotel.restarts.facts import inside
from cgotel.restarts.verdict import Verdict
from cgotel.restarts.words import describe

_MOST_LINES = 24
_SECOND = 1_000_000_000
_LATE_NS = 3 * _SECOND
_KILLS = frozenset(("oom", "oom_kill", "oom_group_kill"))
_ID = re.compile(r"\b([0-9a-f]{12})[0-9a-f]{52}\b")
_BEFORE_S, _AFTER_S = 600.0, 60.0


def story(case: Case, verdict: Verdict, stamp: Callable[[int], str]) -> Iterator[str]:
    """The lines of it; ``stamp`` writes a time as people read it. Ids are cut to their first 12 digits."""
    return (_ID.sub(r"\1", line) for line in _story(case, verdict, stamp))


def _story(case: Case, verdict: Verdict, stamp: Callable[[int], str]) -> Iterator[str]:
    exit_ = case.exit
    workload = exit_.workload
    yield f"{workload.title} ({workload.runtime}) ended {stamp(exit_.ended_ns)}{_lived(case)}"
    yield f"  {verdict.cause}, {verdict.sureness}: {verdict.because}"
    if verdict.limit_cgroup:
        yield f"  limit of   {verdict.limit_cgroup}"
    if verdict.by:
        yield f"  ended by   {verdict.by}"
    for text in verdict.contributing:
        yield f"  also       {text}"
    if verdict.excluded:
        excluded = ", ".join(verdict.excluded)
        yield f"  not        {excluded}: the kernel log has no OOM kill of it, and was read without a gap"
    for finding in verdict.against:
        yield f"  against    {finding.witness}: {finding.text}"
    for source, why in verdict.missing.items():
        yield f"  missing    {source}: {why}"
    if verdict.advice:
        yield f"  what to do {verdict.advice}"
    yield ""
    yield from _timeline(case)


def _lived(case: Case) -> str:
    began = case.exit.began_ns
    lived = f", after {duration((case.exit.ended_ns - began) / _SECOND)}" if began is not None else ""
    return lived + (", while cgotel was not running" if case.exit.past else "")


def _timeline(case: Case) -> Iterator[str]:
    pieces = sorted(_telling(case), key=lambda piece: piece.time_ns)
    left_out = len(pieces) - _MOST_LINES
    if left_out > 0:
        yield f"  {'':>10}  … {left_out} earlier"
        pieces = pieces[left_out:]
    for piece in pieces:
        when = relative((piece.time_ns - case.exit.ended_ns) / _SECOND)
        yield f"  {when:>10}  {piece.source:<13} {describe(piece)}"


def _telling(case: Case) -> Iterator[AnyEvidence]:
    """What is worth a line: of amounts only the last before the end, of counters their sum."""
    end_ns = case.exit.ended_ns
    amounts: dict[tuple[str, str | None], AnyEvidence] = {}
    counts: dict[tuple[str | None, bool], MemoryEvents] = {}
    for piece in case.evidence:
        if _is_noise(piece, case):
            continue
        if isinstance(piece, MemoryUse | HostMemory):
            key = (type(piece).__name__, piece.cgroup)
            if piece.time_ns <= end_ns and (key not in amounts or amounts[key].time_ns < piece.time_ns):
                amounts[key] = piece
        elif isinstance(piece, MemoryEvents) and not piece.rose.keys() & _KILLS:
            _add_up(counts, piece)
        else:
            yield piece
    yield from (piece for piece in counts.values() if piece.rose)
    shown = (None, case.exit.workload.cgroup, _limit_owner(case))
    yield from (piece for (_, cgroup), piece in amounts.items() if cgroup in shown)


def _is_noise(piece: AnyEvidence, case: Case) -> bool:
    """What is too far away, or is told already, or follows from the end in every case."""
    exit_ = case.exit
    after_ns = piece.time_ns - exit_.ended_ns
    if not -_BEFORE_S * _SECOND <= after_ns <= _AFTER_S * _SECOND:
        return True
    own = inside(piece.cgroup, exit_.workload.cgroup)
    match piece:
        case Gap():
            return True
        case RunStarted():
            return piece.workload.id == exit_.workload.id and after_ns < 0
        case MemoryEvents():
            return not own and after_ns > _LATE_NS
        case CgroupEmptied():
            return not own
        case UnitResult():
            return piece.code is None and piece.signal is None and not piece.job
        case ProcessExit():
            return piece.pid != exit_.workload.pid and piece.code == 0
    return False


def _add_up(counts: dict[tuple[str | None, bool], MemoryEvents], piece: MemoryEvents) -> None:
    """Counters that rose often, and killed nothing, are one line."""
    key = (piece.cgroup, piece.local)
    before = counts.get(key)
    if before is None:
        counts[key] = piece
        return
    rose = {
        name: before.rose.get(name, 0) + piece.rose.get(name, 0) for name in {**before.rose, **piece.rose}
    }
    latest = max(before, piece, key=lambda e: e.time_ns)
    counts[key] = msgspec.structs.replace(latest, rose=rose)


def _limit_owner(case: Case) -> str | None:
    owners = [getattr(piece, "limit_cgroup", None) for piece in case.evidence]
    return next((owner for owner in owners if owner), None)


def relative(seconds: float) -> str:
    """A time before or after the end: ``-10.2 s``, ``+31 ms``."""
    if abs(seconds) < 1:
        return f"{seconds * 1000:+.0f} ms"
    return (
        f"{seconds:+.1f} s"
        if abs(seconds) < 100
        else f"{'-' if seconds < 0 else '+'}{duration(abs(seconds))}"
    )


def duration(seconds: float) -> str:
    """A length of time: ``850 ms``, ``42 s``, ``3 min``, ``5.2 h``, ``12 d``."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    for limit, size, unit in ((100, 1, "s"), (100 * 60, 60, "min"), (48 * 3600, 3600, "h")):
        if seconds < limit:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 86400:.3g} d"
