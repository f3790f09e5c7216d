"""Counters that are made of two."""

from __future__ import annotations

from cgotel.model import Number


class Rising:
    """A difference of two counters that the kernel does not give in the same instant.

    What falls between the two may make it step back a little, which no counter may do: it then
    stays where it was until it has caught up.
    """

    __slots__ = ("_highest",)

    def __init__(self) -> None:
        self._highest: Number = 0

    def of(self, difference: Number) -> Number:
        """The counter's value now."""
        self._highest = max(self._highest, difference)
        return self._highest
