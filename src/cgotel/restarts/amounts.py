"""Amounts of memory in words."""

from __future__ import annotations

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_STEP = 1024
_GRAIN = 16 << 20


def amount(size: int | None) -> str:
    """Bytes as people write them (``1.5 GiB``); ``an unknown amount`` for None."""
    if size is None:
        return "an unknown amount"
    value, unit = float(size), 0
    while abs(value) >= _STEP and unit < len(_UNITS) - 1:
        value, unit = value / _STEP, unit + 1
    return f"{value:.4g} {_UNITS[unit]}"


def margin(size: int) -> int:
    """A quarter above a size, rounded up to 16 MiB: a limit to try."""
    return -(-size * 5 // 4 // _GRAIN) * _GRAIN
