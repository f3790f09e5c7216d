"""What a rule is: a cause, with what it needs, what supports it and what speaks against it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from cgotel.evidence import Evidence, LastWords, ProbeResult, UserspaceOom
from cgotel.restarts.facts import RUNTIMES, Facts
from cgotel.restarts.verdict import Cause, Finding

Clue: TypeAlias = Callable[[Facts], Sequence[Finding]]
"""Looks for one thing in a case; what it found, or nothing."""

Words: TypeAlias = Callable[[Facts], str]


def nothing(_: Facts) -> str:
    """No words."""
    return ""


@dataclass(frozen=True, slots=True)
class Rule:
    """One way in which runs end.

    It applies when each clue of ``needs`` is seen and none of ``unless``. ``supports`` make it surer;
    one of ``contradicts`` makes it conflicting. Two independent witnesses confirm it, and where
    ``word_of`` is given one of those must be among them. ``witnesses`` are the sources whose silence
    is named. Rules are asked in the order of ``rank``, lowest first.
    """

    cause: Cause
    name: str
    rank: int
    needs: tuple[Clue, ...]
    supports: tuple[Clue, ...] = ()
    contradicts: tuple[Clue, ...] = ()
    unless: tuple[Clue, ...] = ()
    word_of: tuple[str, ...] = ()
    witnesses: tuple[str, ...] = ()
    because: Words = nothing
    by: Words = nothing
    limit_cgroup: Words = nothing
    contributing: Callable[[Facts], Sequence[str]] = lambda _: ()
    advice: Words = nothing


def found(piece: Evidence, text: str) -> Finding:
    """What a piece of evidence says, in words, under the name of its witness."""
    return Finding(text, witness_of(piece), piece.time_ns)


def witness_of(piece: Evidence) -> str:
    """Who saw it: sources that learn from each other are one witness."""
    if isinstance(piece, LastWords):
        return "log"
    if isinstance(piece, ProbeResult):
        return "probe"
    if isinstance(piece, UserspaceOom):
        return piece.by
    return "runtime" if piece.source in RUNTIMES else piece.source


def any_of(*clues: Clue) -> Clue:
    """Everything that any of the clues finds."""

    def look(facts: Facts) -> Sequence[Finding]:
        return [finding for clue in clues for finding in clue(facts)]

    return look
