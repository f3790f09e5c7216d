"""What a watcher of daemons keeps over its own restarts: one thing for each socket, in one bookmark."""

from __future__ import annotations

import logging
import threading
from typing import TypeVar

import msgspec

from cgotel.contract import Bookmark

log = logging.getLogger(__name__)

T = TypeVar("T", bound=msgspec.Struct)


class Shelf:
    """The bookmark, with a place for each socket. What cannot be read is told once and begun anew."""

    def __init__(self, bookmark: Bookmark, watcher: str) -> None:
        self._bookmark = bookmark
        self._watcher = watcher
        self._lock = threading.Lock()
        self._kept: dict[str, msgspec.Raw] = {}
        try:
            self._kept = msgspec.json.decode(bookmark.read() or b"{}", type=dict[str, msgspec.Raw])
        except (msgspec.DecodeError, UnicodeDecodeError):
            self._complain()

    def read(self, path: str, kind: type[T]) -> T | None:
        """What was kept for the daemon at a socket, None if it was never watched."""
        raw = self._kept.get(path)
        if raw is None:
            return None
        try:
            return msgspec.json.decode(raw, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError):
            self._complain()
            return None

    def write(self, path: str, kept: msgspec.Struct) -> None:
        """Keep it."""
        raw = msgspec.Raw(msgspec.json.encode(kept))
        with self._lock:
            self._kept[path] = raw
            self._bookmark.write(msgspec.json.encode(self._kept))

    def _complain(self) -> None:
        log.warning("watcher %s: what it kept cannot be read, and is begun anew", self._watcher)
