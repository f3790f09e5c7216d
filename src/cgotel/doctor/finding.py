"""What a check found out."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Level(enum.StrEnum):
    """How much a finding matters; only `LOST` makes the exit status 1."""

    LOST = "lost"  # something that matters is not measured here
    RISK = "risk"  # everything is measured, and it does not bode well for a workload
    NOTE = "note"  # good to know
    OK = "ok"


@dataclass(frozen=True, slots=True)
class Finding:
    """One fact, what to do about it, and everything that it is about (cgroups, files)."""

    check: str
    level: Level
    text: str
    remedy: str = ""
    affected: tuple[str, ...] = ()
