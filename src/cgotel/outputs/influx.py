"""Line protocol on standard output, for Telegraf's ``execd`` and whatever else reads it."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Sequence
from typing import Annotated, Any

import msgspec

from cgotel.contract import Output, Settings, SourceStatus
from cgotel.hookspecs import hookimpl
from cgotel.model import Event, Instrument, Point, Sweep
from cgotel.outputs.lines import Lines
from cgotel.outputs.pipe import Pipe, claim_standard_output

DROPPED_BATCHES = Instrument(
    "cgotel.influx.dropped_batches", "counter", "{batch}", "Batches that the reader did not take in time"
)
INVALID_POINTS = Instrument(
    "cgotel.influx.invalid_points", "counter", "{point}", "Points whose value line protocol cannot hold"
)
_DROPPED = DROPPED_BATCHES.series(DROPPED_BATCHES.name)
_INVALID = INVALID_POINTS.series(INVALID_POINTS.name)

LINGER_S = 0.3
"""How long to stay after the last line: Telegraf stops reading as soon as its child has ended."""

log = logging.getLogger(__name__)


class InfluxConfig(Settings, frozen=True):
    """``[outputs.influx]``."""

    path_prefix: str = ""
    """Goes before the `path` tag; "/sys/fs/cgroup" gives the paths of Telegraf's own cgroup plugin."""
    write_timeout: Annotated[float, msgspec.Meta(gt=0, le=60)] = 1.0
    """Seconds in which the reader has to take a batch; then it is dropped and counted."""


class InfluxOutput(Output):
    """One batch a sweep, composed whole and then written; an event at once.

    ``descriptor`` is where it writes; without one it takes standard output for itself at its start,
    and lets its reader come to the end before it is closed.
    """

    name = "influx"
    Config = InfluxConfig
    instruments = (DROPPED_BATCHES, INVALID_POINTS)

    config: InfluxConfig

    def __init__(self, config: Any, descriptor: int | None = None) -> None:
        super().__init__(config)
        self._lines = Lines(self.config.path_prefix)
        self._descriptor = descriptor
        self._pipe: Pipe | None = None
        self._statuses: Sequence[SourceStatus] = ()
        self._told_dropped = False

    def start(self) -> None:
        self._pipe = Pipe(claim_standard_output() if self._descriptor is None else self._descriptor)

    def sources(self, statuses: Sequence[SourceStatus]) -> None:
        self._statuses = statuses

    def write(self, sweep: Sweep) -> None:
        lines = list(self._lines.of_readings(sweep.readings))
        lines.append(self._lines.of_sources(self._statuses, sweep.time_ns))
        self._write("".join(lines))

    def emit(self, event: Event) -> None:
        self._write(self._lines.of_event(event))

    def points(self) -> Iterable[Point]:
        yield _DROPPED, 0 if self._pipe is None else self._pipe.dropped
        yield _INVALID, self._lines.invalid

    def close(self, timeout_s: float = 5.0) -> None:
        pipe, self._pipe = self._pipe, None
        if pipe is not None:
            pipe.finish(min(timeout_s, self.config.write_timeout))
            pipe.close()
            if self._descriptor is None:
                time.sleep(min(timeout_s, LINGER_S))

    def _write(self, text: str) -> None:
        assert self._pipe is not None, "write() before start()"
        taken = self._pipe.write(text.encode("utf-8", "backslashreplace"), self.config.write_timeout)
        if not taken and not self._told_dropped:
            log.warning("a batch is dropped: nobody took it within %g s", self.config.write_timeout)
        self._told_dropped = not taken


@hookimpl
def cgotel_outputs() -> list[type[Output]]:
    return [InfluxOutput]
