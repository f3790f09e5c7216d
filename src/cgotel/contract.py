"""What a plugin's classes look like: the base classes behind the hooks.

Base classes rather than protocols: a method with a default can be added later without breaking
any plugin.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import msgspec

from cgotel.clock import Timeline
from cgotel.evidence import Evidence
from cgotel.kernel.roots import Roots
from cgotel.kernel.source import SourceStatus, State, Unavailable
from cgotel.model import Event, Instrument, Point, Reading, Sweep
from cgotel.stop import Stop

__all__ = [
    "Bookmark",
    "Collector",
    "CollectorSettings",
    "Lost",
    "Output",
    "OutputEnded",
    "Report",
    "Roots",
    "Settings",
    "Settled",
    "SourceStatus",
    "State",
    "Stop",
    "Tick",
    "Timeline",
    "Unavailable",
    "Watcher",
    "WatcherSettings",
]


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A table of the configuration; subclass it to add keys, each with a default and a docstring."""


class CollectorSettings(Settings, frozen=True):
    """What every ``[collectors.NAME]`` table has."""

    enabled: bool = True
    """Whether the collector runs."""


@dataclass(frozen=True, slots=True)
class Tick:
    """One instant, the same for every collector of a sweep.

    ``time_ns`` is Unix time, ``monotonic_ns`` CLOCK_MONOTONIC (for rates), both in nanoseconds;
    ``number`` counts sweeps from 0.
    """

    time_ns: int
    monotonic_ns: int
    number: int = 0


class Collector:
    """Gives readings when asked. Cheap, synchronous, closed when the agent stops.

    A subclass sets ``name`` (its table ``[collectors.NAME]``), ``Config`` (a subclass of
    `CollectorSettings`), ``needs`` (files and rights, as ``cgotel doctor`` shows them) and
    ``instruments`` (every metric that it may fill; an instance may know better than its class).
    Importing its module loads nothing heavy; `start` may.
    """

    name: ClassVar[str]
    Config: ClassVar[type[CollectorSettings]] = CollectorSettings
    needs: ClassVar[tuple[str, ...]] = ()
    instruments: tuple[Instrument, ...] = ()

    def __init__(self, config: Any, roots: Roots) -> None:
        self.config = config
        self.roots = roots

    def start(self) -> None:
        """Open what is needed. Raises `Unavailable` where this collector cannot serve."""

    def collect(self, tick: Tick) -> Iterable[Reading]:
        """The readings of this instant. What it raises is counted and costs this sweep only."""
        raise NotImplementedError

    def events(self) -> Iterable[Event]:
        """What was noticed during the last sweep and is worth a log event."""
        return ()

    def sources(self) -> Iterator[SourceStatus]:
        """The sources behind the last sweep, each with its state."""
        yield from ()

    def close(self) -> None:
        """Let go of descriptors and libraries. May be called twice."""


Report: TypeAlias = Callable[[Evidence], None]
"""Where a watcher takes what it saw. Never blocks, never raises, may be called from any thread."""


class Bookmark:
    """How far a watcher has come, kept over restarts of the agent where there is a place to keep it."""

    def __init__(self) -> None:
        self._content: bytes | None = None

    def read(self) -> bytes | None:
        """What was written last, in this life or the one before; None if nothing was."""
        return self._content

    def write(self, content: bytes) -> None:
        """Remember a few bytes."""
        self._content = content


class WatcherSettings(Settings, frozen=True):
    """What every ``[watchers.NAME]`` table has."""

    enabled: bool = True
    """Whether the watcher runs."""


class Watcher:
    """Waits for things to happen and says so within milliseconds, in a thread of its own.

    A subclass sets ``name`` (its table ``[watchers.NAME]``, and the ``source`` of its evidence),
    ``Config`` (a subclass of `WatcherSettings`) and ``needs`` (files and rights, as ``cgotel doctor``
    shows them). Importing its module loads nothing heavy; `start` may. Times of its evidence are
    those of ``timeline``.
    """

    name: ClassVar[str]
    Config: ClassVar[type[WatcherSettings]] = WatcherSettings
    needs: ClassVar[tuple[str, ...]] = ()

    def __init__(self, config: Any, roots: Roots, timeline: Timeline, bookmark: Bookmark) -> None:
        self.config = config
        self.roots = roots
        self.timeline = timeline
        self.bookmark = bookmark

    def start(self) -> None:
        """Open what is needed. Raises `Unavailable` where this watcher cannot serve."""

    def watch(self, report: Report, stop: Stop) -> None:
        """Report what happens until ``stop`` is set.

        Raises `Unavailable`, or anything, when its source is lost: it is then closed, and started
        again later. What happened in between and cannot be made up for, the next `watch` reports
        as a `cgotel.evidence.Gap`.
        """
        raise NotImplementedError

    def sources(self) -> Iterator[SourceStatus]:
        """Parts of it that have a state of their own (one socket of several)."""
        yield from ()

    def close(self) -> None:
        """Let go of descriptors and of what was made in the kernel. May be called twice."""


class OutputEnded(Exception):  # noqa: N818 - a state, not a fault
    """Whoever read this output has gone for good. It is asked no more; the last one ends the agent."""


class Lost(Exception):  # noqa: N818 - what happened, told already
    """Something was not delivered, and it was told where it happened. The agent only counts it."""


Settled: TypeAlias = Callable[[bool], None]
"""Told whether an event was taken."""


class Output:
    """Takes sweeps and events to a monitoring stack.

    `write` must return quickly: what is slow belongs in the output's own thread, so that a sweep is
    never delayed by a backend.
    """

    name: ClassVar[str]
    Config: ClassVar[type[Settings]] = Settings
    instruments: tuple[Instrument, ...] = ()

    def __init__(self, config: Any) -> None:
        self.config = config

    def check(self) -> None:
        """Raise `ConfigError` for a setting that cannot be used, wherever it comes from."""

    def start(self) -> None:
        """Prepare to write. Raises `Unavailable` where this output cannot serve."""

    def sources(self, statuses: Sequence[SourceStatus]) -> None:
        """Take the state of every source behind the sweep that `write` brings next."""

    def write(self, sweep: Sweep) -> None:
        """Take one sweep. Raises `OutputEnded` when there is nobody left to write to."""
        raise NotImplementedError

    def emit(self, event: Event) -> None:
        """Take one event."""

    def deliver(self, event: Event, settled: Settled) -> None:
        """Take one event, and say by ``settled(True)`` when that is done, or refused for good.

        ``settled(False)``: it could not be done now, and will be asked again. An output that sends
        later says so later, from any thread; one that does not override this has taken an event
        when `emit` returns.
        """
        self.emit(event)
        settled(True)

    def points(self) -> Iterable[Point]:
        """What this output says of itself (queue, failures), joined to the agent's own reading."""
        return ()

    def close(self, timeout_s: float = 5.0) -> None:
        """Send what is held back, for at most ``timeout_s`` seconds. May be called twice."""
