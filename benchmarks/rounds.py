"""Alternating rounds, so that a neighbour on the machine slows everybody; ratios within a round."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median

from contenders import Apart


@dataclass(slots=True)
class Result:
    """CPU seconds of one contender, a round each."""

    name: str
    seconds: list[float] = field(default_factory=list)

    def ratios(self, to: Result) -> list[float]:
        """How many times the other's CPU time, round by round."""
        return [own / other for own, other in zip(self.seconds, to.seconds, strict=True)]


def alternate(
    contenders: Sequence[Apart], rounds: int, between: Callable[[int], None] = lambda number: None
) -> list[Result]:
    """Each contender once a round, another one first each time; ``between`` runs before each round."""
    results = {contender.name: Result(contender.name) for contender in contenders}
    for number in range(rounds):
        between(number)
        first = number % len(contenders)
        for contender in (*contenders[first:], *contenders[:first]):
            results[contender.name].seconds.append(contender.sweep())
    return list(results.values())


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
