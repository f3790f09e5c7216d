"""A ceiling for the number of series, so that a fork bomb of cgroups does not become one of bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cgotel.model import Reading


class SeriesBudget:
    """Admits entities until the ceiling is reached; who is in stays in until it ends.

    ``dropped`` is how many series the last sweep left out: stated, never silent.
    """

    def __init__(self, ceiling: int) -> None:
        self.ceiling = ceiling
        self.dropped = 0
        self._admitted: dict[tuple[str, str], int] = {}

    def admit(self, readings: Iterable[Reading]) -> Iterator[Reading]:
        """The readings of a sweep that fit, those of known entities first."""
        known: dict[tuple[str, str], int] = {}
        waiting: list[Reading] = []
        used = 0
        for reading in readings:
            key = (reading.entity.kind, reading.entity.key)
            if key in self._admitted or key in known:
                known[key] = known.get(key, 0) + len(reading.values)
                used += len(reading.values)
                yield reading
            else:
                waiting.append(reading)
        self.dropped = 0
        for reading in waiting:
            key = (reading.entity.kind, reading.entity.key)
            if used + len(reading.values) > self.ceiling:
                self.dropped += len(reading.values)
                continue
            known[key] = known.get(key, 0) + len(reading.values)
            used += len(reading.values)
            yield reading
        self._admitted = known
