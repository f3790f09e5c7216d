"""A live summary for people: redrawn in place on a terminal, block after block anywhere else."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated, TextIO

import msgspec

from cgotel.contract import Output, OutputEnded, Settings, SourceStatus
from cgotel.hookspecs import hookimpl
from cgotel.losses import Loss, losses
from cgotel.model import Event, Sweep
from cgotel.outputs.frame import event_line, frame
from cgotel.outputs.screen import Said, Screen, coloured, is_screen, paint, plain, size
from cgotel.outputs.summary import Summary, summarize
from cgotel.outputs.table import Paint
from cgotel.outputs.text import clip, encodable


class ConsoleConfig(Settings, frozen=True):
    """``[outputs.console]``."""

    rows: Annotated[int, msgspec.Meta(ge=1)] = 20
    """Cgroups shown at most; on a terminal no more than it has lines for."""
    lines: Annotated[int, msgspec.Meta(ge=0)] = 5
    """Events and log lines that stay on a terminal."""


class ConsoleOutput(Output):
    """Shows each sweep: what is held back most, by what, and how much room is left."""

    name = "console"
    Config = ConsoleConfig

    config: ConsoleConfig

    def __init__(self, config: ConsoleConfig, stream: TextIO | None = None) -> None:
        super().__init__(config)
        self._stream = stream or sys.stdout
        self._said = Said(config.lines)
        self._screen = Screen(self._stream, self._said) if is_screen(self._stream) else None
        self._paint: Paint = paint if self._screen and coloured() else plain
        self._before: Sweep | None = None
        self._summary: Summary | None = None
        self._losses: list[Loss] = []

    def sources(self, statuses: Sequence[SourceStatus]) -> None:
        self._losses = losses(statuses)

    def write(self, sweep: Sweep) -> None:
        self._summary = summarize(sweep, self._before)
        self._before = sweep
        if self._screen is None:
            self._append([*self._frame(self.config.rows, None), ""])
        else:
            self._redraw(self._screen)

    def emit(self, event: Event) -> None:
        line = event_line(event)
        if self._screen is None:
            self._append([line])
        else:
            self._said.lines.append(line)
            self._redraw(self._screen)

    def close(self, timeout_s: float = 5.0) -> None:
        """Give the terminal back as it was, with the last frame left on it."""
        if self._screen is not None and self._summary is not None:
            width, _ = size(self._stream)
            self._screen.leave(self._encodable([*self._frame(self.config.rows, width), *self._said.lines]))

    def _redraw(self, screen: Screen) -> None:
        """As many rows as the terminal has lines for; the first of them are held back most."""
        if self._summary is None:
            return
        width, height = size(self._stream)
        said = [clip(line, width) for line in self._said.lines]
        lines = self._frame(self.config.rows, width)
        beyond = len(lines) + len(said) - height
        if beyond > 0:
            shown = min(self.config.rows, len(self._summary.rows))
            lines = self._frame(max(1, shown - beyond), width)
        screen.draw(self._encodable([*lines, *said][:height]))

    def _frame(self, rows: int, width: int | None) -> list[str]:
        if self._summary is None:
            return []
        return frame(self._summary, self._summary.rows[:rows], self._losses, width, self._paint)

    def _append(self, lines: Sequence[str]) -> None:
        try:
            self._stream.write("".join(f"{line}\n" for line in self._encodable(lines)))
            self._stream.flush()
        except BrokenPipeError as error:
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())  # what is still buffered
            raise OutputEnded("nobody reads standard output") from error

    def _encodable(self, lines: Sequence[str]) -> list[str]:
        encoding = self._stream.encoding
        return [encodable(line, encoding) for line in lines]


@hookimpl
def cgotel_outputs() -> list[type[Output]]:
    return [ConsoleOutput]
