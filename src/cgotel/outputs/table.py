"""The table of cgroups: as many columns as the width has room for, the least needed left out first."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

from cgotel.outputs import figures
from cgotel.outputs.figures import NOT_MEASURED
from cgotel.outputs.summary import Bound, Row
from cgotel.outputs.text import columns, left, right, shorten, visible

Tone: TypeAlias = Literal["plain", "head", "dim", "warn", "bad"]
Paint: TypeAlias = Callable[[str, Tone], str]

_GAP = "  "
_WARN, _BAD = 0.1, 0.5  # shares of time
_NARROW = {"throttled, %": "thr %", "throttled": "thr", "memory": "mem"}
_SHORTEST_LEAST, _LONGEST_LEAST = 16, 40  # of the name
_LITTLE_LEFT, _NOTHING_LEFT = 0.15, 0.05  # shares of the limit


class Cell(NamedTuple):
    """What stands in one place, and how it is shown."""

    text: str
    tone: Tone = "plain"


class Column(NamedTuple):
    """One column: ``group`` stands above the columns that share it.

    ``weight`` says which columns go first where there is no room: the lightest. ``least`` is the
    smallest width; one that may be ``cut`` takes what others leave.
    """

    group: str
    title: str
    cell: Callable[[Row], Cell]
    weight: int
    least: int
    cut: bool = False


def table(
    rows: Sequence[Row], names: Mapping[str, str], totals: bool, width: int | None, paint: Paint
) -> list[str]:
    """Two lines of titles and one for each row, none wider than ``width`` (None: no bound).

    ``names`` say what the owner of a limit is called, by its path.
    ``totals``: stalls and throttling are seconds since each cgroup began, else shares of time.
    """
    name_width = (
        _SHORTEST_LEAST if width is None else min(max(_SHORTEST_LEAST, width * 22 // 100), _LONGEST_LEAST)
    )
    pids_near = any(row.pids_left for row in rows)
    chosen = [c for c in _columns(names, totals, name_width) if c.group != "pids" or pids_near]
    cells = {column: [column.cell(row) for row in rows] for column in chosen}
    widths = _fitted(cells, width)
    shown = [column for column in chosen if column in widths]
    lines = [_groups(shown, widths, paint), _titles(shown, widths, paint)]
    for index in range(len(rows)):
        parts = [_placed(column, cells[column][index], widths[column], paint) for column in shown]
        lines.append(_GAP.join(parts).rstrip())
    return lines


def _columns(names: Mapping[str, str], totals: bool, name_width: int) -> list[Column]:
    amount = _seconds if totals else _share
    unit, title = ("", "time") if totals else (", %", "share")

    def owner(bound: Bound | None) -> Cell:
        return _owner(bound, names)

    return [
        Column("", "cgroup", lambda row: Cell(visible(row.name)), 100, name_width, cut=True),
        Column("", "kind", lambda row: Cell(row.kind), 50, 9, cut=True),
        Column(f"stalled{unit}", "cpu", lambda row: amount(row.stalled["cpu"].some), 93, 5),
        Column(f"stalled{unit}", "mem", lambda row: amount(row.stalled["memory"].some), 92, 5),
        Column(f"stalled{unit}", "io", lambda row: amount(row.stalled["io"].some), 91, 5),
        Column(f"throttled{unit}", title, lambda row: amount(_amount(row.throttled)), 90, 5),
        Column(f"throttled{unit}", "by", lambda row: _throttled_by(row, names), 60, 9, cut=True),
        Column("cpus", "used", lambda row: _cpu(row.cpu, totals), 80, 5),
        Column("cpus", "limit", lambda row: _measured(figures.cpus(_amount(row.cpu_limit))), 58, 5),
        Column("cpus", "by", lambda row: owner(row.cpu_limit), 30, 9, cut=True),
        Column("memory", "used", lambda row: _measured(figures.size(row.memory)), 82, 5),
        Column("memory", "limit", lambda row: _measured(figures.size(_amount(row.memory_limit))), 75, 5),
        Column("memory", "by", lambda row: owner(row.memory_limit), 62, 9, cut=True),
        Column("memory", "left", _left, 70, 5),
        Column("memory", "of", lambda row: owner(row.memory_left), 52, 9, cut=True),
        Column("pids", "left", lambda row: _pids(row.pids_left), 65, 5),
        Column(
            "pids", "of", lambda row: owner(row.pids_left) if row.pids_left else Cell(""), 25, 9, cut=True
        ),
    ]


def _measured(text: str) -> Cell:
    return Cell(text, "dim" if text == NOT_MEASURED else "plain")


def _amount(bound: Bound | None) -> float | None:
    return None if bound is None else bound.amount


def _seconds(amount: float | None) -> Cell:
    return _measured(figures.seconds(amount))


def _share(share: float | None) -> Cell:
    if share is None or share < _WARN:
        return _measured(figures.percent(share))
    return Cell(figures.percent(share), "bad" if share >= _BAD else "warn")


def _cpu(amount: float | None, totals: bool) -> Cell:
    return _seconds(amount) if totals else _measured(figures.cpus(amount))


def _owner(bound: Bound | None, names: Mapping[str, str]) -> Cell:
    if bound is None:
        return Cell(NOT_MEASURED, "dim")
    return Cell(visible(names.get(bound.owner, bound.owner)) + (" high" if bound.high else ""))


def _throttled_by(row: Row, names: Mapping[str, str]) -> Cell:
    """Nobody, where nothing was throttled."""
    return _owner(row.throttled, names) if row.throttled and row.throttled.amount else Cell("")


def _left(row: Row) -> Cell:
    cell = _measured(figures.size(_amount(row.memory_left)))
    if row.memory_left is None or row.memory_limit is None:
        return cell
    if row.memory_left.amount <= _NOTHING_LEFT * row.memory_limit.amount:
        return Cell(cell.text, "bad")
    return Cell(
        cell.text, "warn" if row.memory_left.amount <= _LITTLE_LEFT * row.memory_limit.amount else "plain"
    )


def _pids(pids_left: Bound | None) -> Cell:
    return Cell("") if pids_left is None else Cell(f"{pids_left.amount:.0f}", "warn")


def _fitted(cells: dict[Column, list[Cell]], width: int | None) -> dict[Column, int]:
    """The width of each column that is shown."""
    natural = {
        column: max([column.least, columns(column.title), *(columns(cell.text) for cell in found)])
        for column, found in cells.items()
    }
    if width is None:
        return natural
    widths = {column: column.least if column.cut else natural[column] for column in cells}
    while len(widths) > 1 and _total(widths) > width:
        widths.pop(min(widths, key=lambda column: column.weight))
    _spread(width - _total(widths), widths, natural)
    return widths


def _spread(spare: int, widths: dict[Column, int], natural: Mapping[Column, int]) -> None:
    """Give spare room to the columns that may be cut: to the name first, then to the narrowest."""
    name = next(iter(widths))
    more = min(spare, natural[name] - widths[name])
    widths[name] += more
    spare -= more
    while spare > 0 and (short := [column for column in widths if widths[column] < natural[column]]):
        widths[min(short, key=lambda column: widths[column])] += 1
        spare -= 1


def _total(widths: dict[Column, int]) -> int:
    return sum(widths.values()) + len(_GAP) * (len(widths) - 1)


def _groups(shown: list[Column], widths: dict[Column, int], paint: Paint) -> str:
    line, at = "", 0
    for group, run in itertools.groupby(shown, key=lambda column: column.group):
        room = _total({column: widths[column] for column in run})
        title = group if columns(group) <= room else _NARROW.get(group, group)
        line = left(line, at) + shorten(title, room)
        at += room + len(_GAP)
    return paint(line, "dim")


def _titles(shown: list[Column], widths: dict[Column, int], paint: Paint) -> str:
    parts = [_aligned(column, column.title, widths[column]) for column in shown]
    return paint(_GAP.join(parts).rstrip(), "head")


def _placed(column: Column, cell: Cell, width: int, paint: Paint) -> str:
    text = _aligned(column, shorten(cell.text, width), width)
    return text if cell.tone == "plain" else paint(text, cell.tone)


def _aligned(column: Column, text: str, width: int) -> str:
    return left(text, width) if column.cut else right(text, width)
