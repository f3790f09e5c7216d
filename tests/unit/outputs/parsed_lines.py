"""Line protocol read by its own rules, strictly: what a reader sees, independent of what wrote it."""

from __future__ import annotations

import re
from typing import NamedTuple

Value = int | float | str | bool

_NUMBER = re.compile(r"-?\d+(\.\d+)?(e[+-]?\d+)?")


class Line(NamedTuple):
    """One line; times are Unix times in nanoseconds."""

    measurement: str
    tags: dict[str, str]
    fields: dict[str, Value]
    time_ns: int


def parsed(text: str) -> list[Line]:
    """Every line of a text that ends with a newline."""
    assert text == "" or text.endswith("\n")
    return [_line(line) for line in text.split("\n")[:-1]]


def _line(line: str) -> Line:
    key, fields, time = _apart(line, " ")
    measurement, *tags = _apart(key, ",")
    assert measurement
    return Line(
        _unescaped(measurement),
        _unique(_pair(tag) for tag in tags),
        _unique((key, _value(value)) for key, value in map(_raw_pair, _apart(fields, ","))),
        int(time),
    )


def _unique(pairs):
    found = list(pairs)
    assert len(dict(found)) == len(found), "a key stands twice"
    return dict(found)


def _pair(text: str) -> tuple[str, str]:
    key, value = _raw_pair(text)
    assert not value.endswith("\\")
    return key, _unescaped(value)


def _raw_pair(text: str) -> tuple[str, str]:
    key, value = _apart(text, "=", quotes=False)[:2]
    rest = text[len(key) + 1 :]
    assert key
    assert value
    return _unescaped(key), rest


def _apart(text: str, separator: str, quotes: bool = True) -> list[str]:
    """Parts between separators that are neither escaped nor within a quoted text."""
    parts, part, quoted, position = [], "", False, 0
    while position < len(text):
        character = text[position]
        if character == "\\" and position + 1 < len(text):
            part += text[position : position + 2]
            position += 2
            continue
        if character == '"' and quotes and (quoted or part.endswith("=")):
            quoted = not quoted
        if character == separator and not quoted:
            parts.append(part)
            part = ""
        else:
            part += character
        position += 1
    assert not quoted
    return [*parts, part]


def _unescaped(text: str) -> str:
    return re.sub(r"\\([,= ])", r"\1", text)


def _value(text: str) -> Value:
    if text[0] == '"':
        assert text[-1] == '"'
        return re.sub(r'\\(["\\])', r"\1", text[1:-1])
    if text in ("true", "false"):
        return text == "true"
    if text[-1] in "iu":
        number = int(text[:-1])
        assert number in (range(2**63, 2**64) if text[-1] == "u" else range(-(2**63), 2**63))
        return number
    assert _NUMBER.fullmatch(text), text
    return float(text)
