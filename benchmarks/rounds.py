"""Alternating rounds, so that a neighbour on the machine slows everybody; ratios within a round."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Protocol


class TakesPart(Protocol):
    """Who is measured: ``sweep`` returns the CPU seconds that it took."""

    name: str

    def sweep(self) -> float: ...


@dataclass(slots=True)
class Timed:
    """A function of this process as one that takes part."""

    name: str
    act: Callable[[], object]

    def sweep(self) -> float:
        """The CPU seconds of one call."""
        began = time.process_time_ns()
        self.act()
        return (time.process_time_ns() - began) / 1e9


@dataclass(slots=True)
class Result:
    """CPU seconds of one contender, a round each."""

    name: str
    seconds: list[float] = field(default_factory=list)

    def ratios(self, to: Result) -> list[float]:
        """How many times the other's CPU time, round by round."""
        return [own / other for own, other in zip(self.seconds, to.seconds, strict=True)]


def alternate(
    taking_part: Sequence[TakesPart], rounds: int, between: Callable[[int], None] = lambda number: None
) -> list[Result]:
    """Each once a round, another one first each time; ``between`` runs before each round."""
    results = [Result(one.name) for one in taking_part]
    for number in range(rounds):
        between(number)
        for place in range(len(taking_part)):
            turn = (place + number) % len(taking_part)
            results[turn].seconds.append(taking_part[turn].sweep())
    return results


def spread(values: Sequence[float], digits: int = 2) -> str:
    """``median (least .. most)``."""
    low, middle, high = (f"{value:.{digits}f}" for value in (min(values), median(values), max(values)))
    return f"{middle} ({low} .. {high})"


def table(title: str, header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Text columns: the first to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(header, *lines, strict=True)]
    text = [title, ""]
    for line in (header, *lines):
        cells = [line[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)]
        text.append("  ".join(cells))
    return "\n".join(text) + "\n"
