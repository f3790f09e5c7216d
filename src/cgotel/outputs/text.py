"""Text that fits a terminal, whatever it holds.

Names come from containers: a control character in one could move the cursor or forge a line. A
wide character (East Asian Width, Unicode Standard Annex 11) takes two columns, a combining mark
none.
"""

from __future__ import annotations

import unicodedata

_ELLIPSIS = "…"
_ZERO_WIDTH = ("Mn", "Me")
_PLAINER = str.maketrans({_ELLIPSIS: "~", "·": "-", "→": ">"})


def visible(text: str) -> str:
    """Every character that cannot be printed, as its escape: ``\\x1b``, ``\\n``, ``\\u202e``."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def columns(text: str) -> int:
    """How many columns of a terminal the text takes."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def shorten(text: str, width: int) -> str:
    """The text in at most ``width`` columns, cut in the middle.

    The end is kept longer than the start: siblings differ there. The cut depends on the text and
    the width alone, so that a name looks the same in every frame.
    """
    if columns(text) <= width:
        return text
    if width <= 1:
        return _ELLIPSIS[:width]
    tail = (width - 1) * 2 // 3
    return _head(text, width - 1 - tail) + _ELLIPSIS + _head(text[::-1], tail)[::-1]


def clip(text: str, width: int) -> str:
    """The text in at most ``width`` columns, without its end."""
    return text if columns(text) <= width else _head(text, width - 1) + _ELLIPSIS[:width]


def left(text: str, width: int) -> str:
    """Padded on the right."""
    return text + " " * (width - columns(text))


def right(text: str, width: int) -> str:
    """Padded on the left."""
    return " " * (width - columns(text)) + text


def encodable(text: str, encoding: str) -> str:
    """The text as ``encoding`` can write it: signs get an ASCII stand-in, the rest its escape."""
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(_PLAINER).encode(encoding, "backslashreplace").decode(encoding)
    return text


def _columns(character: str) -> int:
    if unicodedata.category(character) in _ZERO_WIDTH:
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _head(text: str, width: int) -> str:
    """As many characters as fit."""
    used = 0
    for index, character in enumerate(text):
        used += _columns(character)
        if used > width:
            return text[:index]
    return text
