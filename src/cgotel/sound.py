"""What comes from a plugin is checked before anyone relies on it; what is ours is tested instead."""

from __future__ import annotations

import math
from collections.abc import Mapping

from cgotel.model import Entity, Number, Reading, Series


def check(reading: object) -> None:
    """Raise `TypeError` or `ValueError`, which says what is wrong with a reading."""
    if not isinstance(reading, Reading):
        raise TypeError(f"gave {reading!r} for a Reading")
    _check_entity(reading.entity)
    if len(reading.series) != len(reading.values):
        raise ValueError(f"{len(reading.series)} series, and {len(reading.values)} values")
    for series, value in reading.points:
        _check_point(series, value)


def _check_entity(entity: object) -> None:
    if not isinstance(entity, Entity):
        raise TypeError(f"gave {entity!r} for an Entity")
    if not isinstance(entity.kind, str) or not isinstance(entity.key, str):
        raise TypeError(f"kind and key of an Entity must be text: {entity.kind!r}, {entity.key!r}")
    if not isinstance(entity.attributes, Mapping):
        raise TypeError(f"attributes of {entity.key!r} must be a mapping: {entity.attributes!r}")
    for key, value in entity.attributes.items():
        if not isinstance(key, str) or not isinstance(value, str | int | float | bool | tuple):
            raise TypeError(f"attribute {key!r} of {entity.key!r} cannot be {value!r}")


def _check_point(series: object, value: Number) -> None:
    if not isinstance(series, Series):
        raise TypeError(f"gave {series!r} for a Series")
    name = series.instrument.name
    if type(value) not in (int, float):
        raise TypeError(f"{name} cannot be {value!r}: what was not measured has no point")
    if not math.isfinite(value):
        raise ValueError(f"{name} cannot be {value}: what was not measured has no point")
    if isinstance(value, float) and series.instrument.number == "int":
        raise TypeError(f"{name} is {value}, and its Instrument says int: number='double' takes it")
