"""Cgroups whose memory came up to their limit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from cgotel.doctor.facts import Facts
from cgotel.doctor.finding import Finding, Level
from cgotel.model import Number, Reading
from cgotel.outputs.figures import size
from cgotel.outputs.names import path_of

CHECK = "memory"

_NEAR = 0.95


class _Tight(NamedTuple):
    oom_kills: Number
    filled: float
    text: str


def check(facts: Facts) -> Iterator[Finding]:
    """memory.peak at 95 % of memory.max or more, or a limit that was run into (memory.events)."""
    found = sorted(filter(None, map(_tight, facts.readings)), reverse=True)
    if found:
        what = "one cgroup" if len(found) == 1 else f"{len(found)} cgroups"
        yield Finding(
            CHECK,
            Level.RISK,
            f"the memory of {what} came up to the limit",
            "raise memory.max (MemoryMax=, --memory) where oom or oom_kill count; a limit that page "
            "cache alone fills does no harm",
            tuple(tight.text for tight in found),
        )
    elif any(reading.value("memory.peak") is not None for reading in facts.readings):
        yield Finding(CHECK, Level.OK, "no cgroup came near its memory limit")


def _tight(reading: Reading) -> _Tight | None:
    limit, peak = reading.value("memory.max"), reading.value("memory.peak")
    kills = _events(reading, "oom_kill")
    ooms = _events(reading, "oom")
    filled = 0.0 if limit is None or peak is None else peak / max(limit, 1)
    if filled < _NEAR and not ooms:
        return None
    parts = [f"peak {size(peak)} of {size(limit)}"]
    hits = _events(reading, "max")
    parts += [
        f"{name} {count}" for name, count in (("max", hits), ("oom", ooms), ("oom_kill", kills)) if count
    ]
    return _Tight(kills, filled, f"{path_of(reading.entity)}: {', '.join(parts)}")


def _events(reading: Reading, event: str) -> Number:
    """This cgroup's own events; the subtree's on kernels that do not tell them apart."""
    for file in ("memory.events.local", "memory.events"):
        count = reading.value(f"{file}.{event}")
        if count is not None:
            return count
    return 0
