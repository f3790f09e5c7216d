"""Bookmarks of watchers, kept over restarts of the agent."""

from __future__ import annotations

import sqlite3

from cgotel.contract import Bookmark
from cgotel.store.database import Database


class StoredBookmark(Bookmark):
    """One watcher's bookmark, by its name."""

    def __init__(self, database: Database, name: str) -> None:
        super().__init__()
        self._database = database
        self._name = name
        database.attempt(self._recall)

    def _recall(self, connection: sqlite3.Connection) -> None:
        row = connection.execute("SELECT content FROM marks WHERE name = ?", (self._name,)).fetchone()
        self._content = row[0] if row else None

    def write(self, content: bytes) -> None:
        """Remember a few bytes."""
        if content == self._content:
            return
        super().write(content)
        self._database.attempt(
            lambda connection: connection.execute(
                "INSERT INTO marks VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET content = excluded.content",
                (self._name, content),
            )
        )
