"""Runs that end again and again for the same cause: one event for the loop instead of a flood."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

import msgspec

from cgotel.evidence import OomKill
from cgotel.restarts.amounts import amount
from cgotel.restarts.case import Case
from cgotel.restarts.verdict import Cause, Verdict

SECOND = 1_000_000_000
_FROM = 3
_QUIET_S = 900.0
_MOST = 8_192
_NO_LOOP: frozenset[Cause] = frozenset(("completed", "requested_stop", "redeployed", "host_shutdown"))
_SHORT_S = 120.0


class Loop(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``count`` ends for the same cause, about ``period_s`` seconds apart.

    ``hopeless`` says why another start cannot help, where the evidence shows that.
    """

    cause: Cause
    count: int
    period_s: float
    first_ns: int
    hopeless: str = ""


@dataclass(slots=True)
class _Series:
    cause: Cause
    first_ns: int
    last_ns: int
    count: int
    next_told: int = _FROM
    all_short: bool = True


class Loops:
    """Remembers the last ends of each workload, by its name."""

    def __init__(self) -> None:
        self._series: OrderedDict[tuple[str, str], _Series] = OrderedDict()

    def note(self, case: Case, verdict: Verdict) -> Loop | None:
        """Count one end; the loop that it belongs to, from its third end on."""
        key = (case.exit.workload.runtime, case.exit.workload.title)
        if verdict.cause in _NO_LOOP:
            self._series.pop(key, None)
            return None
        series = self._series.get(key)
        end_ns = case.exit.ended_ns
        if (
            series is None
            or series.cause != verdict.cause
            or end_ns - series.last_ns > self._quiet_ns(series)
        ):
            series = _Series(verdict.cause, end_ns, end_ns, 0)
        series.count += 1
        series.last_ns = max(series.last_ns, end_ns)
        began = case.exit.began_ns
        series.all_short &= began is not None and end_ns - began < _SHORT_S * SECOND
        self._series[key] = series
        self._series.move_to_end(key)
        while len(self._series) > _MOST:
            self._series.popitem(last=False)
        return self._loop(series, case, verdict) if series.count >= _FROM else None

    def is_news(self, case: Case) -> bool:
        """Whether a loop has grown enough to be told again: at 3 ends, then 10, 30, 100, ..."""
        series = self._series[case.exit.workload.runtime, case.exit.workload.title]
        if series.count < series.next_told:
            return False
        while series.next_told <= series.count:
            lead = str(series.next_told)[0]
            series.next_told = series.next_told * 10 // 3 if lead == "3" else series.next_told * 3
        return True

    def holds(self, case: Case) -> bool:
        """Whether the workload of a case is in a loop."""
        series = self._series.get((case.exit.workload.runtime, case.exit.workload.title))
        return series is not None and series.count >= _FROM

    def _loop(self, series: _Series, case: Case, verdict: Verdict) -> Loop:
        return Loop(
            cause=series.cause,
            count=series.count,
            period_s=(series.last_ns - series.first_ns) / (series.count - 1) / SECOND,
            first_ns=series.first_ns,
            hopeless=_hopeless(series, case, verdict),
        )

    def _quiet_ns(self, series: _Series) -> int:
        period_ns = (series.last_ns - series.first_ns) // max(1, series.count - 1)
        return max(int(_QUIET_S * SECOND), 3 * period_ns)


def _hopeless(series: _Series, case: Case, verdict: Verdict) -> str:
    if verdict.cause == "start_failure":
        return "it can never start as it is"
    if verdict.cause == "gpu_oom" and series.all_short:
        return "the GPU memory that it asks for is not there: starting again cannot help"
    own = verdict.limit_cgroup is not None and verdict.limit_cgroup == case.exit.workload.cgroup
    if verdict.cause == "cgroup_oom" and own and series.all_short:
        limits = [e.limit for e in case.evidence if isinstance(e, OomKill) and e.limit]
        size = f" of {amount(limits[-1])}" if limits else ""
        return f"it can never fit its memory limit{size}: {series.count} runs in a row died at it early"
    return ""
