"""Standard error as Telegraf reads it: one line a message, with its level in front.

A line without a level counts as an error of the plugin; a line of 64 KiB ends the reading for good;
and where nobody reads, a full pipe must not hold the sweep. So every line is short enough to be
written whole or not at all (PIPE_BUF, pipe(7)), and one that finds no room is dropped and counted.
Source: Telegraf, plugins/inputs/execd; docs/EXTERNAL_PLUGINS.md.
"""

from __future__ import annotations

import io
import logging
import os
import select
import sys
import types

from cgotel.outputs.pipe import unblocked
from cgotel.outputs.text import visible

_LONGEST = select.PIPE_BUF
_LEVELS = {logging.DEBUG: "D!", logging.INFO: "I!", logging.WARNING: "W!"}
_ERROR = "E!"

log = logging.getLogger("cgotel")


def log_to_telegraf(verbose: bool) -> None:
    """Send log lines, uncaught exceptions and whatever is printed to standard error, by level."""
    handler = _Handler(unblocked(os.dup(2)))
    handler.setFormatter(logging.Formatter("%(message)s"))
    logging.basicConfig(level=logging.DEBUG if verbose else logging.INFO, handlers=[handler])
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
    logging.captureWarnings(capture=True)
    sys.stdout = io.TextIOWrapper(_Printed(logging.INFO), "utf-8", "backslashreplace", line_buffering=True)
    sys.stderr = io.TextIOWrapper(_Printed(logging.ERROR), "utf-8", "backslashreplace", line_buffering=True)
    sys.excepthook = _uncaught


def hang_up() -> None:
    """Let the reader of standard error see its end while this process is still there.

    Telegraf reports an error when its child ends in the middle of a read.
    """
    for handler in logging.root.handlers[:]:
        logging.root.removeHandler(handler)
        handler.close()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (1, 2):
        os.dup2(nowhere, descriptor)


class _Handler(logging.Handler):
    """Writes each record as one line that Telegraf takes for its level."""

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._dropped = 0

    def emit(self, record: logging.LogRecord) -> None:
        try:
            told = f"({self._dropped} log lines before this one are lost) " if self._dropped else ""
            line = f"{_LEVELS.get(record.levelno, _ERROR)} {told}{visible(self.format(record))}"
            data = line.encode("utf-8", "backslashreplace")[: _LONGEST - 1]
            os.write(self._descriptor, data + b"\n")
            self._dropped = 0
        except OSError:
            self._dropped += 1
        except Exception:  # a log line must never end what it tells of
            self._dropped += 1

    def close(self) -> None:
        if self._descriptor > 2:
            os.close(self._descriptor)
            self._descriptor = 2
        super().close()


class _Printed(io.RawIOBase):
    """What somebody prints, line by line into the log."""

    def __init__(self, level: int) -> None:
        self._level = level
        self._text = b""

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        added = bytes(data)  # type: ignore[call-overload]
        *lines, self._text = (self._text + added).split(b"\n")
        for line in lines:
            log.log(self._level, "%s", line.decode("utf-8", "replace"))
        self._text = self._text[:_LONGEST]
        return len(added)


def _uncaught(kind: type[BaseException], error: BaseException, trace: types.TracebackType | None) -> None:
    log.critical("%s: %s", kind.__name__, error, exc_info=(kind, error, trace))
