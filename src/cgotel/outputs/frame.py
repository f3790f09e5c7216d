"""One frame of the live summary: title, host, table, what is not measured and why."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Iterable, Sequence

from cgotel.losses import Loss, brief
from cgotel.model import Event, Severity
from cgotel.outputs import figures
from cgotel.outputs.names import name_of, path_of
from cgotel.outputs.summary import Host, Row, Stall, Summary
from cgotel.outputs.table import Paint, table
from cgotel.outputs.text import columns, visible

_GAP = "   "
_NAMES = 8
_SEVERITIES = {Severity.INFO: "INFO", Severity.WARN: "WARN", Severity.ERROR: "ERROR", Severity.FATAL: "FATAL"}


def frame(
    summary: Summary, rows: Sequence[Row], losses: Sequence[Loss], width: int | None, paint: Paint
) -> list[str]:
    """The lines of a frame that shows these rows of a summary."""
    totals = summary.interval_s is None
    lines = [*_wrapped(_title(summary, rows), width), *_wrapped(_host(summary.host, totals), width), ""]
    lines += table(rows, summary.names, totals, width, paint) if rows else ["no cgroup with processes in it"]
    missing = not_measured(losses)
    if missing:
        lines += ["", *(paint(line, "dim") for line in textwrap.wrap(missing, width or 10_000))]
    return lines


def not_measured(losses: Sequence[Loss]) -> str:
    """One line: what is lost most, why, and how many other reasons there are; empty if nothing is."""
    if not losses:
        return ""
    first, others = losses[0], len(losses) - 1
    names = [visible(name) for name in brief(first.names)]
    if len(names) > _NAMES:
        names[_NAMES:] = ["…"]
    line = f"not measured: {', '.join(names)} ({visible(first.reason)})"
    if others:
        line += f" and {others} more" if others > 1 else " and one more"
    return f"{line}; cgotel doctor says all"


def event_line(event: Event) -> str:
    """An event on one line, whatever its body holds."""
    path = path_of(event.entity)
    who = event.entity.key if path is None else name_of(event.entity, path)
    severity = _SEVERITIES.get(event.severity, str(event.severity))
    return visible(f"{_clock(event.time_ns)} {severity} {event.name} {who}: {event.body}")


def _title(summary: Summary, rows: Sequence[Row]) -> list[str]:
    interval_s = summary.interval_s
    return [
        f"cgotel {_clock(summary.time_ns)}",
        "totals since each cgroup began" if interval_s is None else f"over {figures.seconds(interval_s)}",
        f"{len(rows)} of {len(summary.names)} cgroups, most held back first",
    ]


def _host(host: Host, totals: bool) -> list[str]:
    parts = ["host stalled"]
    for resource, stall in host.stalled.items():
        if stall != Stall() or resource != "irq":
            parts.append(f"{resource} {_stall(stall, totals)}")
    available, total = figures.size(host.memory_available), figures.size(host.memory_total)
    return [*parts, f"memory available {available} of {total}"]


def _stall(stall: Stall, totals: bool) -> str:
    some, full = (
        (figures.seconds(stall.some), figures.seconds(stall.full))
        if totals
        else (_percent(stall.some), _percent(stall.full))
    )
    if stall.some is None:
        return full
    return some if stall.full is None else f"{some} (full {full})"


def _percent(share: float | None) -> str:
    return figures.percent(share) + ("%" if share is not None else "")


def _clock(time_ns: int) -> str:
    return time.strftime("%H:%M:%S", time.localtime(time_ns // 1_000_000_000))


def _wrapped(parts: Iterable[str], width: int | None) -> list[str]:
    """The parts side by side, on as few lines as hold them."""
    lines: list[str] = []
    for part in parts:
        if lines and (width is None or columns(lines[-1]) + len(_GAP) + columns(part) <= width):
            lines[-1] += _GAP + part
        else:
            lines.append(part)
    return lines
