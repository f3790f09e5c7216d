"""A whole inquiry at work in the guest: every watcher, the real sources, and what it concluded."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec

from cgotel.assemble import assemble
from cgotel.clock import now
from cgotel.contract import Bookmark, Timeline
from cgotel.inquiry import Inquiry
from cgotel.model import Event
from cgotel.restarts.case import decode
from cgotel.restarts.story import story
from cgotel.restarts.verdict import Verdict
from cgotel.store import Database, Incident, Incidents
from cgotel.sweeper import Sweeper

SETTLE_S = 3.0
_WAIT_S = 60.0


class Heard(NamedTuple):
    """An event, and when it was handed out (CLOCK_MONOTONIC, seconds)."""

    event: Event
    at_s: float


class Verdicts:
    """What the inquiry has told so far."""

    def __init__(self, database: Database) -> None:
        self.events: list[Heard] = []
        self._database = database
        self._changed = threading.Condition()

    def tell(self, event: Event) -> None:
        with self._changed:
            self.events.append(Heard(event, time.monotonic()))
            self._changed.notify_all()

    def of(self, what: str, count: int = 1, cause: str = "", timeout_s: float = _WAIT_S) -> list[Incident]:
        """The incidents of a workload whose name or id has this in it, the oldest first.

        As soon as there are so many and the first is judged by ``cause``, or the time is up.
        """

        def enough() -> bool:
            found = self._incidents(what)
            return len(found) >= count and (not cause or found[0].verdict.cause == cause)

        with self._changed:
            self._changed.wait_for(enough, timeout_s)
        found = self._incidents(what)
        if len(found) < count:
            stories = "".join(told(incident) for incident in found)
            raise TimeoutError(f"{len(found)} of {count} ends of {what} within {timeout_s:g} s:{stories}")
        return found

    def explained(self, incident: Incident) -> str:
        """What `cgotel explain` says of it, while the store is being written."""
        path = self._database.path
        assert path is not None
        done = subprocess.run(
            ["cgotel", "explain", incident.case.exit.workload.title],
            env={**os.environ, "STATE_DIRECTORY": str(path.parent)},
            capture_output=True,
            text=True,
            check=True,
            timeout=_WAIT_S,
        )
        assert f"{incident.verdict.cause}, {incident.verdict.sureness}: " in done.stdout
        return done.stdout

    def event_of(self, name: str, what: str, timeout_s: float = _WAIT_S) -> Heard:
        """The first event of a name whose body or attributes speak of something."""

        def fits(heard: Heard) -> bool:
            return heard.event.name == name and what in f"{heard.event.body} {heard.event.attributes}"

        with self._changed:
            if not self._changed.wait_for(lambda: any(map(fits, self.events)), timeout_s):
                raise TimeoutError(f"no {name} of {what}: {[heard.event for heard in self.events]}")
            return next(filter(fits, self.events))

    def _incidents(self, what: str) -> list[Incident]:
        """By a query that reads no other's evidence: it is asked again at every event."""
        query = "SELECT evidence, verdict FROM incidents WHERE name LIKE ? OR id LIKE ? ORDER BY ended_ns"
        with self._database.transaction() as connection:
            rows = connection.execute(query, (f"%{what}%", f"%{what}%")).fetchall()
        return [Incident(decode(case), msgspec.json.decode(verdict, type=Verdict)) for case, verdict in rows]


@contextmanager
def inquiring(folder: Path, without: Mapping[str, str] | frozenset[str] = frozenset()) -> Iterator[Verdicts]:
    """An inquiry with all watchers but some, and sweeps of the cgroups once a second beside it."""
    database = Database(folder / "lab.db")
    assembly = assemble(None)
    timeline = Timeline()
    verdicts = Verdicts(database)
    watchers = [w for w in assembly.watchers(timeline, lambda name: Bookmark()) if w.name not in without]
    inquiry = Inquiry(
        watchers, assembly.registry.rules, timeline, Incidents(database), verdicts.tell, SETTLE_S
    )
    sweeper = Sweeper(assembly.collectors(), 10**6)
    stop = threading.Event()

    def sweep() -> None:
        while not stop.wait(1):
            inquiry.see(sweeper.sweep(now()))

    sweeps = threading.Thread(target=sweep)
    inquiry.start()
    sweeps.start()
    try:
        yield verdicts
    finally:
        stop.set()
        sweeps.join()
        inquiry.close()
        sweeper.close()
        database.close()


def told(incident: Incident, stamp: Callable[[int], str] = str) -> str:
    """The story of an incident, for the message of a failed test."""
    return "\n" + "\n".join(story(incident.case, incident.verdict, stamp))
