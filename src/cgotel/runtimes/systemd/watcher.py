"""The watcher ``systemd``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from cgotel.contract import Bookmark, Report, Roots, SourceStatus, Stop, Timeline, Watcher, WatcherSettings

if TYPE_CHECKING:
    from cgotel.runtimes.systemd.listener import Listener


class SystemdSettings(WatcherSettings, frozen=True):
    """``[watchers.systemd]``"""

    keep_last_words: bool = False
    """Whether the line of a unit's log in which a known pattern was found is kept, or its name only."""


class SystemdWatcher(Watcher):
    """Runs of services and scopes, their results and jobs; kills by systemd-oomd and earlyoom; sleep.

    Knows the system's manager, not those of users.
    """

    name: ClassVar[str] = "systemd"
    Config = SystemdSettings
    needs: ClassVar[tuple[str, ...]] = (
        "/run/dbus/system_bus_socket: any user may listen",
        "journalctl, as root or in group systemd-journal or adm: earlyoom's kills, ends that nobody saw",
    )

    def __init__(self, config: SystemdSettings, roots: Roots, timeline: Timeline, bookmark: Bookmark) -> None:
        super().__init__(config, roots, timeline, bookmark)
        self._listener: Listener | None = None

    def start(self) -> None:
        """Connect to the system bus, and see that systemd is there."""
        from cgotel.runtimes.systemd.listener import Listener

        if self._listener is None:
            self._listener = Listener(self.roots, self.timeline, self.bookmark, self.config.keep_last_words)
        self._listener.open()

    def watch(self, report: Report, stop: Stop) -> None:
        """Report until stopped, or until systemd cannot be heard any more."""
        assert self._listener is not None
        self._listener.listen(report, stop)

    def sources(self) -> Iterator[SourceStatus]:
        """The journal."""
        if self._listener is not None:
            yield from self._listener.sources()

    def close(self) -> None:
        """End the connection and the journal's reader."""
        if self._listener is not None:
            self._listener.close()
