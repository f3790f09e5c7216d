"""The findings for people and for programs."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence

from cgotel.doctor.finding import Finding, Level
from cgotel.outputs.json_document import encoded
from cgotel.outputs.table import Paint, Tone
from cgotel.outputs.text import visible

VERSION = 1

_TONES: Mapping[Level, Tone] = {
    Level.LOST: "bad",
    Level.RISK: "warn",
    Level.NOTE: "plain",
    Level.OK: "dim",
}
_LEVEL_WIDTH, _CHECK_WIDTH = 4, 11
_SHOWN = 8


def text(findings: Sequence[Finding], width: int, paint: Paint) -> str:
    """One paragraph a finding: level, check, what is so, what to do, and some of what it is about."""
    lines: list[str] = []
    for finding in findings:
        label = f"{finding.level.value:{_LEVEL_WIDTH}}  {finding.check:{_CHECK_WIDTH}}  "
        said = _paragraph(label, " " * len(label), finding.text, width)
        lines.append(paint(said[0][:_LEVEL_WIDTH], _TONES[finding.level]) + said[0][_LEVEL_WIDTH:])
        lines += said[1:]
        indent = " " * len(label)
        for affected in _some(finding.affected):
            lines += _paragraph(f"{indent}- ", f"{indent}  ", affected, width)
        if finding.remedy:
            lines += _paragraph(f"{indent}to do: ", f"{indent}       ", finding.remedy, width)
    return "\n".join([*lines, "", _conclusion(findings), ""])


def json(findings: Iterable[Finding], host: Mapping[str, str]) -> bytes:
    """All of it, with every cgroup and file named."""
    listed = [
        {
            "check": finding.check,
            "level": finding.level.value,
            "text": finding.text,
            "remedy": finding.remedy,
            "affected": finding.affected,
        }
        for finding in findings
    ]
    return encoded({"version": VERSION, "host": host, "findings": listed})


def is_lost(findings: Iterable[Finding]) -> bool:
    """Whether something that matters is not measured."""
    return any(finding.level is Level.LOST for finding in findings)


def _some(affected: Sequence[str]) -> list[str]:
    shown = list(affected[:_SHOWN])
    more = len(affected) - len(shown)
    return [*shown, f"and {more} more (--format json names them)"] if more else shown


def _paragraph(first: str, others: str, content: str, width: int) -> list[str]:
    return textwrap.wrap(
        visible(content), width, initial_indent=first, subsequent_indent=others, break_on_hyphens=False
    )


def _conclusion(findings: Sequence[Finding]) -> str:
    lost = sum(finding.level is Level.LOST for finding in findings)
    if not lost:
        return "nothing that matters is lost"
    return f"{lost} {'thing is' if lost == 1 else 'things are'} lost"
