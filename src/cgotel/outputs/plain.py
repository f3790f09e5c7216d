"""The second net below `cgotel.sound`: what text could not hold of a plugin's point is left out alone."""

from __future__ import annotations

import math
from collections.abc import Iterable

from cgotel.model import AttributeValue, Number, Series


def number(series: Series, raw: Number) -> Number | None:
    """A point in its instrument's unit; None where that is no finite int or float."""
    if type(raw) not in (int, float):
        return None
    try:
        value = series.convert(raw)
        return value if math.isfinite(value) else None
    except (OverflowError, ValueError):  # an int too large for a float; NaN as an int
        return None


def fits(attributes: Iterable[tuple[str, AttributeValue]]) -> bool:
    """Whether every key is text, and every value text, a number, a truth or a row of texts."""
    return all(isinstance(key, str) and _is_value(value) for key, value in attributes)


def _is_value(value: object) -> bool:
    if isinstance(value, tuple):
        return all(isinstance(part, str) for part in value)
    return isinstance(value, str | bool | int) or (isinstance(value, float) and math.isfinite(value))
