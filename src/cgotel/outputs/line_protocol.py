"""InfluxDB line protocol, as Telegraf's parser and InfluxDB both take it.

    measurement,tag=value,tag=value field=1i,other=0.5,text="said" 1700000000000000000

Integers carry an ``i``, a ``u`` where only 64 unsigned bits hold them. There is no way to write a
newline in a tag, an empty tag, a NaN or an infinity; and a backslash in a tag has a meaning only
before what it escapes, which no two parsers agree on. Source: InfluxDB, "Line protocol"; Telegraf,
plugins/parsers/influx.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable

import msgspec

from cgotel.model import AttributeValue

LONGEST_LINE = 60_000
"""Bytes of a line with its newline; readers of 64 KiB have stopped for good at longer ones."""

LONGEST_NAME = 2048
"""Bytes of a tag, a key or a text before it is escaped; InfluxDB takes no series key above 64 KiB."""

MOST_FIELD_BYTES = LONGEST_LINE // 2
"""Of that, what fields may take; the rest is for the measurement, the tags and the time."""

_INT64 = range(-(2**63), 2**63)
_UINT64 = range(2**64)

_CONTROL = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029\ud800-\udfff]")
_AMBIGUOUS_BACKSLASH = re.compile(r'\\(?=[,= "]|\Z)')
_KEY_ESCAPES = str.maketrans({",": r"\,", "=": r"\=", " ": r"\ "})
_MEASUREMENT_ESCAPES = str.maketrans({",": r"\,", " ": r"\ "})
_TEXT_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\""})
_DIGEST_BYTES = 4


def key(text: str) -> str:
    """A tag's key, a tag's value or a field's key; a text that nothing can stand for is ``""``.

    What cannot be written stands as its escape: a newline as ``\\n``, a backslash that would escape
    what follows it as ``\\x5c``.
    """
    return _plain(text).translate(_KEY_ESCAPES)


def measurement(text: str) -> str:
    """A measurement's name, where ``=`` stands for itself."""
    return _plain(text).translate(_MEASUREMENT_ESCAPES)


def quoted(text: str) -> str:
    """A field's text."""
    return f'"{_printable(_cut(text)).translate(_TEXT_ESCAPES)}"'


def number(value: object, integer: bool) -> str | None:
    """A field's number; None for what has no place on the line, or is none."""
    if not isinstance(value, int | float) or not math.isfinite(value):
        return None
    if not integer:
        return repr(float(value))
    whole = int(value)
    if whole in _INT64:
        return f"{whole}i"
    return f"{whole}u" if whole in _UINT64 else None


def field(value: AttributeValue) -> str | None:
    """An attribute as a field: numbers and booleans keep their type, lists become JSON."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return number(value, isinstance(value, int))
    return quoted(text(value))


def text(value: AttributeValue) -> str:
    """An attribute as text: what is no string as JSON."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def tags(pairs: Iterable[tuple[str, AttributeValue]]) -> str:
    """``,key=value`` for each pair; one that is empty is left out, and so is what makes it too long."""
    found = ""
    for name, value in pairs:
        written = key(text(value))
        if written and len(found) + len(name) + len(written) < LONGEST_LINE // 4:
            found += f",{key(name)}={written}"
    return found


def _plain(text: str) -> str:
    return _AMBIGUOUS_BACKSLASH.sub(r"\\x5c", _printable(_cut(text)))


def _printable(text: str) -> str:
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def _cut(text: str) -> str:
    """The text, or as much of it as may stand in a line and a hash that tells it from its like."""
    if len(text) * 4 <= LONGEST_NAME:
        return text
    data = text.encode("utf-8", "surrogatepass")
    if len(data) <= LONGEST_NAME:
        return text
    digest = hashlib.blake2s(data, digest_size=_DIGEST_BYTES).hexdigest()
    return f"{data[: LONGEST_NAME - 16].decode('utf-8', 'ignore')}~{digest}"
