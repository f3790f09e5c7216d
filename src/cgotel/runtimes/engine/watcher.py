"""The watcher of one engine: its sockets, root's and users', each watched on its own."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from cgotel.contract import Report, SourceStatus, Stop, Unavailable, Watcher, WatcherSettings
from cgotel.runtimes.engine.dialect import Dialect
from cgotel.runtimes.engine.marks import Marks
from cgotel.runtimes.several import Several

if TYPE_CHECKING:
    from cgotel.runtimes.engine.daemon import Daemon


class EngineSettings(WatcherSettings, frozen=True):
    """``[watchers.docker]``, ``[watchers.podman]``."""

    socket: str = ""
    """Path of the daemon's Unix socket, with or without ``unix://``; empty: where it usually is."""

    keep_last_words: bool = False
    """Whether evidence holds the matching line of a container's log, or the pattern's name only."""


class EngineWatcher(Watcher):
    """Starts, ends, states, health and last words of containers, as their engine tells them."""

    Config = EngineSettings
    dialect: ClassVar[Dialect]
    usual: ClassVar[tuple[str, ...]]
    """Where the socket is looked for: the first is the one to miss."""
    variable: ClassVar[str]

    _daemons: dict[str, Daemon] | None = None
    _marks: Marks | None = None
    _several: Several | None = None

    def start(self) -> None:
        """See which daemons are there."""
        from cgotel.runtimes.engine.daemon import Daemon  # brings http.client: 4 MiB

        if self._daemons is None or self._marks is None:
            self._daemons, self._marks = {}, Marks(self.bookmark)
        for path in self._sockets():
            if path not in self._daemons:
                self._daemons[path] = Daemon(
                    path, self.dialect, self.roots, self.timeline, self._marks, self.config.keep_last_words
                )
        self._several = Several([self._daemons[path] for path in self._sockets()])
        with self._by_name():
            self._several.open()

    def watch(self, report: Report, stop: Stop) -> None:
        """Report what the daemons say."""
        assert self._several is not None
        with self._by_name():
            self._several.watch(report, stop)

    def sources(self) -> Iterator[SourceStatus]:
        """Each daemon, where there are several."""
        if self._several is not None:
            yield from self._several.sources()

    @contextmanager
    def _by_name(self) -> Iterator[None]:
        """What is unavailable is this watcher, by the name under which its silence is asked for."""
        try:
            yield
        except Unavailable as unavailable:
            raise Unavailable(replace(unavailable.status, name=self.name)) from unavailable

    def _sockets(self) -> list[str]:
        """The one that is named, by us or in the environment, else every one that is there."""
        named = self.config.socket or os.environ.get(self.variable, "")
        if self.config.socket or named.startswith("unix://"):
            return [named.removeprefix("unix://")]
        there = [path for pattern in self.usual for path in sorted(glob.glob(pattern))]
        unique = {os.path.realpath(path): path for path in reversed(there)}
        return [path for path in there if path in unique.values()] or [self.usual[0]]
