"""HTTP over a Unix socket, and of HTTP only GET: nothing that a daemon could take for an order.

`http.client` does it, with a socket that gives up in time and when the agent stops. The ``docker``
package would bring requests and urllib3 along: 12 MiB and 120 ms in an agent that needs neither,
against 4 MiB and 15 ms.
"""

from __future__ import annotations

import http.client
import io
import socket
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any

from cgotel.contract import Stop

_CHUNK = 64 * 1024
_MOST = 16 * 1024 * 1024


class Stopped(Exception):  # noqa: N818 - not a fault
    """The agent stops: whatever was asked is of no interest any more."""


class Refused(Exception):  # noqa: N818 - an answer
    """The daemon answered with another status than 200."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"the daemon answers {status}: {message}")
        self.status = status


FAULTS = (OSError, http.client.HTTPException, Refused, ValueError)
"""What a daemon may do to one who asks it: vanish, stall, refuse, talk nonsense."""


class Client:
    """Asks one daemon; each question has a connection of its own, so that none waits for another."""

    def __init__(self, path: str, stop: Stop) -> None:
        self._path = path
        self._stop = stop
        self._open: set[_Connection] = set()

    def hang_up(self) -> None:
        """End whatever is being asked or told; who waits for it sees the end."""
        for connection in tuple(self._open):
            connection.hang_up()

    def get(self, target: str, timeout_s: float = 5, most: int = _MOST) -> bytes:
        """The whole body of an answer. Raises one of `FAULTS`, or `Stopped`; ``most`` is in bytes."""
        with self._connected(timeout_s) as connection, closing(_answer(connection, target)) as answer:
            body = answer.read(most + 1)
            if len(body) > most:
                raise ValueError(f"an answer of more than {most} bytes")
            return body

    def stream(self, target: str, head_s: float = 5, body_s: float | None = None) -> Iterator[bytes]:
        """Pieces of a body as they come, until the daemon ends it; then, or when time is up, it raises.

        The answer must begin within ``head_s`` and end within ``body_s`` seconds.
        """
        with self._connected(head_s) as connection, closing(_answer(connection, target)) as answer:
            connection.limit(body_s)
            with suppress(http.client.IncompleteRead):  # an end without the words for it
                while piece := answer.read1(_CHUNK):
                    yield piece

    @contextmanager
    def _connected(self, timeout_s: float) -> Iterator[_Connection]:
        connection = _Connection(self._path, self._stop, timeout_s)
        self._open.add(connection)
        try:
            yield connection
        finally:
            self._open.discard(connection)
            connection.close()


def _answer(connection: _Connection, target: str) -> http.client.HTTPResponse:
    connection.request("GET", target)
    answer = connection.getresponse()
    if answer.status != 200:
        text = answer.read(1000).decode("utf-8", "replace").strip()
        raise Refused(answer.status, text)
    return answer


class _Connection(http.client.HTTPConnection):
    """One connection for one question, with a time limit."""

    def __init__(self, path: str, stop: Stop, timeout_s: float) -> None:
        super().__init__("localhost")
        self._socket = _Socket(path, stop)
        self.limit(timeout_s)

    def limit(self, timeout_s: float | None) -> None:
        """Give up in so many seconds from now, None: never."""
        self._socket.deadline = None if timeout_s is None else time.monotonic() + timeout_s

    def hang_up(self) -> None:
        """Let the one who reads see an end, from another thread."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def connect(self) -> None:
        self._socket.reach()
        self.sock = self._socket

    def close(self) -> None:
        super().close()
        self._socket.close()


class _Socket(socket.socket):
    """A Unix socket whose reads end at a deadline, or when the agent stops."""

    def __init__(self, path: str, stop: Stop) -> None:
        super().__init__(socket.AF_UNIX, socket.SOCK_STREAM)
        self.deadline: float | None = None
        self._path = path
        self._stop = stop

    def reach(self) -> None:
        """Connect. A daemon that accepts nobody, its backlog full, is refused as one that stalls."""
        self.settimeout(self._left())
        self.connect(self._path)

    def makefile(self, *args: Any, **kwargs: Any) -> io.BufferedReader:  # type: ignore[override]
        return io.BufferedReader(_Patient(self), _CHUNK)

    def receive(self, buffer: Any) -> int:
        """Wait for bytes; 0 at the end. Raises `TimeoutError`, or `Stopped`."""
        if not self._stop.wait_for(self.fileno(), self._left()):
            if self._stop.is_set():
                raise Stopped
            raise TimeoutError("no answer in time")
        return self.recv_into(buffer)

    def _left(self) -> float | None:
        return None if self.deadline is None else max(0.001, self.deadline - time.monotonic())


class _Patient(io.RawIOBase):
    def __init__(self, connected: _Socket) -> None:
        self._socket = connected

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._socket.receive(buffer)
