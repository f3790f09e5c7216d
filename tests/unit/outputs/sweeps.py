"""Sweeps said in a few words: cgroups by path, numbers under the kernel's names."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal

from cgotel.identity import identify
from cgotel.model import Entity, Instrument, Number, Reading, Sweep

NOON_NS = 1_700_049_600 * 10**9  # 2023-11-15 12:00:00 UTC
SECOND_NS = 10**9

# What a plugin may give and no text can hold.
UNWRITABLE_NUMBERS = (math.nan, math.inf, 10**400, None, "5", True, Decimal(5), 1j)
UNWRITABLE_ATTRIBUTES = (None, b"a", object(), ["a"], (1,), {"a": 1}, math.nan)


def cgroup(path: str, inode: int = 1, /, **attributes: str) -> Entity:
    """The entity of a cgroup, identified by its path as the collector does it."""
    identity = identify(path)
    named = {key.replace("_", "."): value for key, value in attributes.items()}
    return Entity(
        identity.kind,
        f"{path}@{inode}",
        {**identity.attributes, **named, "process.linux.cgroup": f"0::{path}"},
    )


def reading(
    entity: Entity,
    numbers: Mapping[str, Number],
    owned: Mapping[str, tuple[Number, str]] | None = None,
    time_ns: int = NOON_NS,
) -> Reading:
    """A reading with plain numbers, and with amounts that have an owner."""
    points = [(_instrument(source).series(source), raw) for source, raw in numbers.items()]
    for source, (raw, owner) in (owned or {}).items():
        series = _instrument(source).series(source, attributes={"cgroup.limit.owner": owner})
        points.append((series, raw))
    return Reading.of(entity, time_ns, points)


def sweep(*readings: Reading, at_s: float = 0) -> Sweep:
    """A sweep so many seconds after noon."""
    return Sweep(NOON_NS + int(at_s * SECOND_NS), list(readings))


def _instrument(source: str) -> Instrument:
    return Instrument(f"test.{source}", "gauge", "1", source)
