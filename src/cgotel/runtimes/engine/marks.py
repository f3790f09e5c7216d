"""How far each daemon's events have been handled, in the watcher's one bookmark."""

from __future__ import annotations

import threading

import msgspec

from cgotel.contract import Bookmark

_KEPT = 32


class Mark(msgspec.Struct):
    """One daemon: its last events (their keys, newest last), and when it was last heard, on the wall
    clock in nanoseconds."""

    alive: int
    time: int
    seen: list[str] = []

    def has(self, key: str, wall: int) -> bool:
        """Whether an event was handled already: it is among the last, or older than all of them."""
        if key in self.seen:
            return True
        return len(self.seen) == _KEPT and wall < min(int(seen.split(" ", 1)[0]) for seen in self.seen)

    def pass_(self, key: str, wall: int) -> None:
        """An event was handled."""
        self.seen = [*self.seen[1 - _KEPT :], key]
        self.time = max(self.time, wall)
        self.alive = max(self.alive, wall)


class Marks:
    """The marks of all daemons of a watcher, by the path of the socket. Safe for several threads."""

    def __init__(self, bookmark: Bookmark) -> None:
        self._bookmark = bookmark
        self._lock = threading.Lock()
        self._written = b""
        try:
            self._marks = msgspec.json.decode(bookmark.read() or b"{}", type=dict[str, Mark])
        except ValueError:  # of another version, or damaged: begin anew
            self._marks = {}

    def get(self, path: str) -> Mark | None:
        """Where a daemon's events were left."""
        return self._marks.get(path)

    def keep(self, path: str, mark: Mark) -> None:
        """Write down where they are left now."""
        with self._lock:
            self._marks[path] = mark
            content = msgspec.json.encode(self._marks)
            if content != self._written:
                self._bookmark.write(content)
                self._written = content
