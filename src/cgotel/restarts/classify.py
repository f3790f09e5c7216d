"""From a case to a verdict: rules asked in turn, each by what it needs and what contradicts it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

import msgspec

from cgotel.restarts.case import Case
from cgotel.restarts.facts import Facts
from cgotel.restarts.rule import Clue, Rule
from cgotel.restarts.rules import RULES
from cgotel.restarts.rules.unknown import unknown
from cgotel.restarts.verdict import MEMORY_CAUSES, Finding, Sureness, Verdict

Failed: TypeAlias = Callable[[Rule, BaseException], object]
"""Told of a rule that raised, or whose verdict is none."""


def classify(case: Case, rules: Iterable[Rule] = RULES, failed: Failed | None = None) -> Verdict:
    """Why a run ended: the first rule that applies; one that is contradicted only where no other does.

    A rule that fails is passed over and ``failed`` is told; where that is None, it raises.
    """
    facts = Facts(case)
    conflicting: Verdict | None = None
    for rule in sorted(rules, key=lambda rule: rule.rank):
        try:
            verdict = _judge(rule, facts)
            if verdict is not None:
                _check(verdict)
        except (Exception, SystemExit) as error:
            if failed is None:
                raise
            failed(rule, error)
            continue
        if verdict is None:
            continue
        if verdict.sureness != "conflicting":
            return verdict
        conflicting = conflicting or verdict
    return conflicting or unknown(facts)


def _judge(rule: Rule, facts: Facts) -> Verdict | None:
    if any(clue(facts) for clue in rule.unless):
        return None
    needed: list[Finding] = []
    for clue in rule.needs:
        seen = clue(facts)
        if not seen:
            return None
        needed += seen
    supporting = _once([*needed, *_all(rule.supports, facts)])
    against = _once(_all(rule.contradicts, facts))
    return Verdict(
        cause=rule.cause,
        sureness=_sureness(rule, facts, supporting, against),
        because=rule.because(facts),
        supporting=supporting,
        against=against,
        missing=_missing(rule.witnesses, facts, supporting),
        by=rule.by(facts),
        limit_cgroup=rule.limit_cgroup(facts) or None,
        contributing=tuple(rule.contributing(facts)),
        excluded=("memory",) if rule.cause not in MEMORY_CAUSES and facts.memory_excluded else (),
        advice=rule.advice(facts),
    )


def _check(verdict: Verdict) -> None:
    """Raises where a plugin's rule gave what could not be read back."""
    msgspec.json.decode(msgspec.json.encode(verdict), type=Verdict)


def _sureness(
    rule: Rule, facts: Facts, supporting: Sequence[Finding], against: Sequence[Finding]
) -> Sureness:
    if against:
        return "conflicting"
    witnesses = {finding.witness for finding in supporting}
    if rule.word_of and not witnesses & set(rule.word_of):
        return "probable"
    return "confirmed" if len(witnesses) > 1 and facts.end_is_certain else "probable"


def _all(clues: Iterable[Clue], facts: Facts) -> list[Finding]:
    return [finding for clue in clues for finding in clue(facts)]


def _once(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(dict.fromkeys(findings), key=lambda finding: finding.time_ns))


def _missing(sources: Iterable[str], facts: Facts, heard: Sequence[Finding]) -> dict[str, str]:
    """The sources that could have spoken for or against this and did not see."""
    spoke = {finding.witness for finding in heard}
    silent = {source: facts.silent(source) for source in sources if source not in spoke}
    return {source: why for source, why in silent.items() if why is not None}
