"""A terminal that is drawn on in place, and given back as it was."""

from __future__ import annotations

import logging
import os
import sys
from collections import deque
from collections.abc import Iterable
from typing import Any, TextIO

# ECMA-48 control sequences, and xterm's alternate screen
_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
_HOME, _CLEAR_LINE, _CLEAR_BELOW = "\x1b[H", "\x1b[K", "\x1b[J"
_SGR = {"plain": "", "head": "1", "dim": "2", "warn": "33", "bad": "1;31"}


def is_screen(stream: TextIO) -> bool:
    """Whether a stream is a terminal that can be drawn on."""
    return stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def size(stream: TextIO) -> tuple[int, int]:
    """Columns and lines of the terminal behind a stream, as they are now; one that has none says 0."""
    columns, lines = os.get_terminal_size(stream.fileno())
    return columns or 80, lines or 24


def coloured() -> bool:
    """Whether colours are wanted: not with NO_COLOR (no-color.org)."""
    return not os.environ.get("NO_COLOR")


def paint(text: str, tone: str) -> str:
    """Text in a tone, for a terminal."""
    return f"\x1b[{_SGR[tone]}m{text}\x1b[0m"


def plain(text: str, tone: str) -> str:
    """Text as it is, for anything else."""
    return text


class Said:
    """The last lines that were said while the terminal was in use; a sink for log handlers."""

    def __init__(self, kept: int) -> None:
        self.lines: deque[str] = deque(maxlen=kept)

    def write(self, text: str) -> None:
        self.lines.extend(line for line in text.splitlines() if line)

    def flush(self) -> None:
        """Nothing is held back."""


class Screen:
    """The terminal behind a stream. From the first `draw` to `leave` it belongs to the caller.

    Log lines for standard error on the same terminal would fall into the picture; meanwhile they go
    to ``said``, an append-only sink of lines.
    """

    def __init__(self, stream: TextIO, said: Said) -> None:
        self._stream = stream
        self._said = said
        self._handlers: list[logging.StreamHandler[Any]] = []
        self._entered = False

    def draw(self, lines: Iterable[str]) -> None:
        """Show these lines and nothing else."""
        if not self._entered:
            self._enter()
        text = "".join(f"{line}{_CLEAR_LINE}\r\n" for line in lines).removesuffix("\r\n")
        self._write(_HOME + text + _CLEAR_BELOW)

    def leave(self, lines: Iterable[str]) -> None:
        """Give the terminal back, with these lines on it. May be called twice."""
        if self._entered:
            self._entered = False
            for handler in self._handlers:
                handler.setStream(sys.stderr)
            self._write(_LEAVE + "".join(f"{line}\n" for line in lines))

    def _enter(self) -> None:
        self._entered = True
        if sys.stderr.isatty():
            self._handlers = [
                handler
                for handler in logging.getLogger().handlers
                if isinstance(handler, logging.StreamHandler) and handler.stream is sys.stderr
            ]
            for handler in self._handlers:
                handler.setStream(self._said)
        self._write(_ENTER)

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
