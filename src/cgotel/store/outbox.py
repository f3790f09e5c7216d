"""Events that wait until each output has taken them: on disk, in order, bounded, once each by uid."""

from __future__ import annotations

import sqlite3
import threading
from collections import deque
from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

import msgspec

from cgotel.model import AttributeValue, Entity, Event
from cgotel.store.database import Database


class Waiting(NamedTuple):
    """An event that an output has not taken yet."""

    number: int
    event: Event


class Outbox:
    """Keeps at most ``most`` events for each output; the oldest are dropped and counted."""

    def __init__(self, database: Database, outputs: Sequence[str], most: int = 10_000) -> None:
        self._database = database
        self._outputs = tuple(outputs)
        self._most = most
        self.dropped = 0
        self._spilled: dict[str, deque[Waiting]] = {output: deque() for output in outputs}
        self._spills = 0
        self._spilling = threading.Lock()
        self._forget_strangers()

    def add(self, event: Event) -> bool:
        """Keep an event for every output; False where one with its uid was there before.

        What the store cannot take is kept in memory.
        """
        added = True

        def change(connection: sqlite3.Connection) -> None:
            nonlocal added
            cursor = connection.execute(
                "INSERT INTO events (uid, event) VALUES (?, ?) ON CONFLICT DO NOTHING",
                (event.uid, _encoded(event)),
            )
            added = cursor.rowcount > 0
            if added:
                connection.executemany(
                    "INSERT INTO deliveries VALUES (?, ?)",
                    [(output, cursor.lastrowid) for output in self._outputs],
                )
                self._trim(connection, cursor.lastrowid or 0)

        if not self._database.attempt(change):
            self._spill(event)
        return added

    def waiting(self, output: str, after: int = 0, most: int = 100) -> list[Waiting]:
        """The oldest events that an output has not taken, from a number on."""
        rows: list[tuple[int, bytes]] = []

        def read(connection: sqlite3.Connection) -> None:
            rows.extend(
                connection.execute(
                    "SELECT number, event FROM deliveries JOIN events USING (number) "
                    "WHERE output = ? AND number > ? ORDER BY number LIMIT ?",
                    (output, after, most),
                )
            )

        self._database.attempt(read)
        with self._spilling:
            spilled = list(islice(self._spilled[output], most))
        return [*spilled, *(Waiting(number, _decoded(content)) for number, content in rows)]

    def taken(self, output: str, number: int) -> None:
        """An output has taken an event."""
        if number < 0:
            with self._spilling:
                kept = self._spilled[output]
                self._spilled[output] = deque(waiting for waiting in kept if waiting.number != number)
            return
        self._database.attempt(
            lambda connection: connection.execute(
                "DELETE FROM deliveries WHERE output = ? AND number = ?", (output, number)
            )
        )

    def count(self) -> int:
        """How many deliveries are still to be made."""
        stored = 0

        def read(connection: sqlite3.Connection) -> None:
            nonlocal stored
            stored = int(connection.execute("SELECT count(*) FROM deliveries").fetchone()[0])

        self._database.attempt(read)
        return stored + sum(map(len, self._spilled.values()))

    def _spill(self, event: Event) -> None:
        with self._spilling:
            self._spills += 1
            for kept in self._spilled.values():
                kept.append(Waiting(-self._spills, event))
                if len(kept) > self._most:
                    kept.popleft()
                    self.dropped += 1

    def _trim(self, connection: sqlite3.Connection, newest: int) -> None:
        """Numbers go up by one: what is ``most`` behind the newest is too old for anyone."""
        cursor = connection.execute("DELETE FROM deliveries WHERE number <= ?", (newest - self._most,))
        self.dropped += max(0, cursor.rowcount)
        connection.execute("DELETE FROM events WHERE number <= ?", (newest - self._most,))

    def _forget_strangers(self) -> None:
        """What waits for an output that is configured no more waits in vain."""

        def change(connection: sqlite3.Connection) -> None:
            known = {row[0] for row in connection.execute("SELECT DISTINCT output FROM deliveries")}
            strangers = [(output,) for output in known - set(self._outputs)]
            connection.executemany("DELETE FROM deliveries WHERE output = ?", strangers)

        self._database.attempt(change)


class _Kept(msgspec.Struct, frozen=True):
    name: str
    time_ns: int
    observed_ns: int
    severity: int
    kind: str
    key: str
    entity: dict[str, str | int | float | bool | tuple[str, ...]]
    began_ns: int | None
    body: str
    uid: str
    attributes: dict[str, str | int | float | bool | tuple[str, ...]]


def _encoded(event: Event) -> bytes:
    entity = event.entity
    kept = _Kept(
        event.name,
        event.time_ns,
        event.observed_ns,
        event.severity,
        entity.kind,
        entity.key,
        dict(entity.attributes),
        entity.began_ns,
        event.body,
        event.uid,
        dict(event.attributes),
    )
    return msgspec.msgpack.encode(kept)


def _decoded(content: bytes) -> Event:
    kept = msgspec.msgpack.decode(content, type=_Kept)
    attributes: dict[str, AttributeValue] = dict(kept.attributes)
    return Event(
        kept.name,
        kept.time_ns,
        kept.observed_ns,
        kept.severity,
        Entity(kept.kind, kept.key, dict(kept.entity), kept.began_ns),
        kept.body,
        kept.uid,
        attributes,
    )
