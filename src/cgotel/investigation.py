"""Everything that is needed to say why things ended: the store, the watchers, the inquiry."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cgotel.assemble import Assembly
from cgotel.contract import Bookmark, Timeline
from cgotel.inquiry import Inquiry
from cgotel.model import Event
from cgotel.store import Database, Incidents, Outbox, StoredBookmark, state_directory


class Investigation:
    """One a process. ``instance`` names its store: an agent and a child of Telegraf keep their own.

    ``outputs`` are the names of those for whom the outbox keeps events.
    """

    def __init__(self, assembly: Assembly, instance: str, outputs: Sequence[str]) -> None:
        self._assembly = assembly
        self._settings = assembly.configuration.restarts
        directory = state_directory(assembly.configuration.agent.state_directory, assembly.environ)
        self._database = Database(directory / f"{instance}.db" if self._settings.enabled else None)
        self.outbox = Outbox(self._database, outputs, self._settings.keep_events)

    def begin(self, tell: Callable[[Event], object]) -> Inquiry | None:
        """Start the watchers; what they lead to is told. None where it is switched off."""
        if not self._settings.enabled:
            return None
        timeline = Timeline()
        inquiry = Inquiry(
            self._assembly.watchers(timeline, self._bookmark),
            self._assembly.registry.rules,
            timeline,
            Incidents(self._database, self._settings.keep_incidents),
            tell,
            self._settings.settle,
        )
        inquiry.start()
        return inquiry

    def close(self) -> None:
        """Let go of the store, after the inquiry was closed."""
        self._database.close()

    def _bookmark(self, name: str) -> Bookmark:
        return StoredBookmark(self._database, name)
