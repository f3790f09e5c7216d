"""The confusion matrix of verdicts: what was caused against what was concluded, over all kernels.

A guest test says ``record_property("verdict", [kernel, supervisor, scenario, caused, concluded, sureness])``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

PROPERTY = "verdict"


class Cell(NamedTuple):
    """One exit that a test brought about, and the verdict on it."""

    kernel: str
    supervisor: str
    scenario: str
    caused: str
    concluded: str
    sureness: str


def lines(cells: Iterable[Cell]) -> Iterator[str]:
    """The matrix as text, and below it each cell off the diagonal; nothing where nothing was judged."""
    cells = sorted(set(cells))
    if not cells:
        return
    counts = Counter((cell.caused, cell.concluded) for cell in cells)
    causes = sorted({cell.caused for cell in cells} | {cell.concluded for cell in cells})
    width = max(map(len, causes))
    yield f"verdicts on {len(cells)} exits that were caused (rows), as concluded (columns by letter)"
    letters = {cause: chr(ord("a") + place) for place, cause in enumerate(causes)}
    yield f"{'':{width + 4}}" + "".join(f"{letters[cause]:>4}" for cause in causes)
    for caused in causes:
        row = "".join(f"{counts[caused, concluded] or '.':>4}" for concluded in causes)
        yield f"  {letters[caused]} {caused:<{width}}{row}"
    right = sum(cell.caused == cell.concluded for cell in cells)
    sure = sum(cell.sureness == "confirmed" for cell in cells)
    yield f"{right} of {len(cells)} as caused, {sure} of them confirmed"
    for cell in cells:
        if cell.caused != cell.concluded:
            case = f"{cell.kernel} {cell.supervisor} {cell.scenario}"
            yield f"  {case}: {cell.caused} was judged {cell.concluded}"
