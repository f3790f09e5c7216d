"""What the kernel prints for a traced event, and how a line of it is read (trace/events.rst).

The names of tasks in it are raw: they may hold spaces, brackets and newlines. Two things make the
text certain all the same. The name of the task at the left is padded to 16 bytes, one more than a
name can have (kernel/trace/trace_output.c, trace_print_context); and what follows a name inside an
event is longer than any name, so that no name can feign the end of its line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple, TypeAlias

from cgotel.kernel.tasks import text

Value: TypeAlias = int | str

_HEAD = re.compile(rb"(?s:(.{16}))-(\d{1,10}) +\[(\d{3,6})\] \S+ +(\d{1,12})\.(\d{6}): (\w+): ")
_LOST = re.compile(rb"CPU:(\d{1,6}) \[LOST(?: (\d{1,20}))? EVENTS\]\n")
_PRINTED = re.compile(r'^print fmt: "((?:[^"\\]|\\.)*)", (.+)$', re.MULTILINE)
_DIRECTIVE = re.compile(r"%(?:l|ll|h)?([dus])")
_FIELD = re.compile(r"\s*(?:REC->(\w+)|__get_str\((\w+)\))\s*")
_VALUES = {"d": r"(-?\d{1,20})", "u": r"(\d{1,20})", "s": r"((?s:.{0,15}))"}


class Record(NamedTuple):
    """One event. ``pid`` and ``comm`` are those of the running task; ``time_ns`` is of the trace clock."""

    event: str
    pid: int
    comm: str
    cpu: int
    time_ns: int
    fields: Mapping[str, Value]


class Lost(NamedTuple):
    """Events of one CPU were overwritten before they were read; how many may be unknown."""

    cpu: int
    events: int | None


class Unread(NamedTuple):
    """Bytes that are no record of an expected event."""

    data: bytes


class Shape:
    """How one event is printed, from its ``format`` file, whatever the version of the kernel."""

    def __init__(self, described: str) -> None:
        """Raises `ValueError` for a format that this parser cannot follow."""
        printed = _PRINTED.search(described)
        if printed is None:
            raise ValueError("it has no plain print fmt")
        template, arguments = printed[1], [_FIELD.fullmatch(item) for item in printed[2].split(",")]
        names = tuple(found[1] or found[2] for found in arguments if found)
        kinds = _DIRECTIVE.findall(template)
        if not len(kinds) == len(arguments) == len(names):
            raise ValueError("its print fmt is not made of plain fields")
        parts = re.split(r"%(?:l|ll|h)?[dus]", template)
        pattern = re.escape(parts[0])
        for kind, rest in zip(kinds, parts[1:], strict=True):
            pattern += _VALUES[kind] + re.escape(rest)
        self.names = names
        self._kinds = kinds
        self._pattern = re.compile(pattern.encode() + rb"\n")

    def read(self, data: bytes, start: int) -> tuple[dict[str, Value], int] | None:
        """The fields of an event printed at ``start``, and where the next record begins."""
        found = self._pattern.match(data, start)
        if found is None:
            return None
        values: list[Value] = [
            text(group) if kind == "s" else int(group)
            for kind, group in zip(self._kinds, found.groups(), strict=True)
        ]
        return dict(zip(self.names, values, strict=True)), found.end()


def records(data: bytes, shapes: Mapping[str, Shape]) -> Iterator[Record | Lost | Unread]:
    """What one read of trace_pipe gave, which ends with a whole line (tracing_read_pipe)."""
    at = 0
    while at < len(data):
        item, at = _next(data, at, shapes)
        yield item


def _next(data: bytes, at: int, shapes: Mapping[str, Shape]) -> tuple[Record | Lost | Unread, int]:
    if lost := _LOST.match(data, at):
        return Lost(int(lost[1]), int(lost[2]) if lost[2] else None), lost.end()
    head = _HEAD.match(data, at)
    if head is not None and (shape := shapes.get(head[6].decode("ascii", "replace"))) is not None:
        read = shape.read(data, head.end())
        if read is not None:
            fields, after = read
            time_ns = int(head[4]) * 10**9 + int(head[5]) * 1000
            comm = text(head[1].lstrip(b" "))
            return Record(head[6].decode(), int(head[2]), comm, int(head[3]), time_ns, fields), after
    end = data.find(b"\n", at) + 1 or len(data)
    return Unread(data[at:end]), end
