"""Everything that an agent needs to say why things ended: the store, the watchers, the inquiry."""

from __future__ import annotations

from collections.abc import Sequence

from cgotel.agent import Agent
from cgotel.assemble import Assembly
from cgotel.contract import Bookmark, Output, Timeline
from cgotel.inquiry import Inquiry
from cgotel.store import Database, Incidents, Outbox, StoredBookmark, state_directory


class Investigation:
    """One an agent. ``instance`` names its store: two agents on one host keep their own."""

    def __init__(self, assembly: Assembly, instance: str, outputs: Sequence[Output]) -> None:
        self._assembly = assembly
        self._settings = assembly.configuration.restarts
        directory = state_directory(assembly.configuration.agent.state_directory, assembly.environ)
        self._database = Database(directory / f"{instance}.db" if self._settings.enabled else None)
        self.outbox = Outbox(self._database, [output.name for output in outputs], self._settings.keep_events)

    def begin(self, agent: Agent) -> None:
        """Start the watchers, and tell the agent what they lead to. Nothing where it is switched off."""
        if not self._settings.enabled:
            return
        timeline = Timeline()
        inquiry = Inquiry(
            self._assembly.watchers(timeline, self._bookmark),
            self._assembly.registry.rules,
            timeline,
            Incidents(self._database, self._settings.keep_incidents),
            agent.emit,
            self._settings.settle,
        )
        agent.accompany(inquiry)
        inquiry.start()

    def close(self) -> None:
        """Let go of the store, after the agent was closed."""
        self._database.close()

    def _bookmark(self, name: str) -> Bookmark:
        return StoredBookmark(self._database, name)
