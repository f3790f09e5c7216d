"""One attempt of a probe: run it in a thread that may wait, and call it off from another."""

from __future__ import annotations

import contextlib
import socket
import threading
from dataclasses import dataclass
from typing import Protocol

LONGEST_TEXT = 500


@dataclass(frozen=True, slots=True)
class Outcome:
    """Whether it was answered as it should be, and the answer in short."""

    ok: bool
    text: str = ""


class Attempt(Protocol):
    """Something that may hang."""

    def run(self) -> Outcome:
        """Try it. Whatever it raises is a failure too."""

    def cancel(self) -> None:
        """Make `run` return soon, if that is possible. Never blocks, may be called at any time."""


class Connections:
    """Opens sockets that another thread may end."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: socket.socket | None = None
        self._cancelled = False

    def connect(self, host: str, port: int, timeout_s: float) -> socket.socket:
        """A connection to the first address that takes one. Raises OSError."""
        connection = socket.create_connection((host, port), timeout_s)
        self.hold(connection)
        return connection

    def hold(self, connection: socket.socket) -> None:
        """From now on it is this one that `cancel` ends."""
        with self._lock:
            self._held = connection
            if self._cancelled:
                self._end()

    def cancel(self) -> None:
        """End what is held and what will be."""
        with self._lock:
            self._cancelled = True
            self._end()

    def _end(self) -> None:
        if self._held is not None:
            with contextlib.suppress(OSError, ValueError):
                self._held.shutdown(socket.SHUT_RDWR)
