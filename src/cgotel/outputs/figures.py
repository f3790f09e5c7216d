"""Numbers for people: three figures are enough, and what was not measured is ``-``, never 0."""

from __future__ import annotations

NOT_MEASURED = "-"

_BINARY = ("B", "K", "M", "G", "T", "P", "E")
_SIXTY = 60
_DAY = 86400


def size(amount: float | None) -> str:
    """Bytes in powers of 1024, as systemd prints them: ``812M``, ``1.5G``."""
    if amount is None:
        return NOT_MEASURED
    sign, rest = ("-", -amount) if amount < 0 else ("", amount)
    power = 0
    while rest >= 999.5 and power < len(_BINARY) - 1:
        rest /= 1024
        power += 1
    if power == 0:
        return f"{sign}{rest:.0f}B"
    decimals = 2 if rest < 9.995 else 1 if rest < 99.95 else 0
    return f"{sign}{rest:.{decimals}f}{_BINARY[power]}"


def percent(share: float | None) -> str:
    """A share as percent, without the sign: ``0``, ``0.4``, ``37``."""
    if share is None:
        return NOT_MEASURED
    if share == 0:
        return "0"
    return f"{share * 100:.1f}" if share < 0.0995 else f"{share * 100:.0f}"


def cpus(amount: float | None) -> str:
    """A number of CPUs: ``0.02``, ``1.50``, ``24.0``."""
    if amount is None:
        return NOT_MEASURED
    return f"{amount:.2f}" if amount < 9.995 else f"{amount:.1f}"


def seconds(amount: float | None) -> str:
    """A length of time: ``0s``, ``3ms``, ``2.4s``, ``12m05s``, ``3h07m``, ``2d04h``."""
    if amount is None:
        return NOT_MEASURED
    if amount < 0.9995:
        return f"{amount * 1000:.0f}ms" if amount else "0s"
    if amount < _SIXTY:
        return f"{amount:.1f}s" if amount < 9.95 else f"{amount:.0f}s"
    whole = round(amount)
    if whole < _SIXTY * _SIXTY:
        return f"{whole // 60}m{whole % 60:02}s"
    if whole < _DAY:
        return f"{whole // 3600}h{whole % 3600 // 60:02}m"
    return f"{whole // _DAY}d{whole % _DAY // 3600:02}h"
