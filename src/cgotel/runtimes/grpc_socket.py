"""gRPC over a Unix socket: one channel, calls with a deadline, streams that never keep a daemon waiting."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import weakref
from collections import deque
from typing import Any

from cgotel.contract import SourceStatus, State, Unavailable
from cgotel.kernel.source import state_of

_TIMEOUT_S = 5.0
_MOST_WAITING = 20_000
_LONGEST = 300
_LARGEST_ANSWER = 64 << 20
_OPTIONS = (
    ("grpc.max_receive_message_length", _LARGEST_ANSWER),
    ("grpc.default_authority", "localhost"),  # Go's HTTP refuses the escaped path that grpc-core sends
    ("grpc.enable_retries", 0),
    ("grpc.enable_http_proxy", 0),
)


class CallFailed(Exception):  # noqa: N818 - a state of the daemon, not a fault of ours
    """A call was refused, or got no answer in time; ``code`` is gRPC's name for it."""

    def __init__(self, code: str, said: str) -> None:
        super().__init__(f"{code}: {said}" if said else code)
        self.code = code


class GrpcSocket:
    """One daemon's socket. ``name`` and ``remedy`` are for the `Unavailable` of `open`."""

    def __init__(self, path: str, name: str, remedy: str) -> None:
        self.path = path
        self._name = name
        self._remedy = remedy
        self._channel: Any = None

    def open(self) -> None:
        """Connect. Raises `Unavailable` where gRPC is not installed or nobody listens."""
        try:
            import grpc
        except ImportError as error:
            raise self.unavailable(
                State.ABSENT, f"grpcio cannot be imported: {error}", "pip install 'cgotel[containerd]'"
            ) from None
        self._try_to_connect()
        self._channel = grpc.insecure_channel(f"unix:{self.path}", _OPTIONS)

    def unavailable(self, state: State, reason: str, remedy: str | None = None) -> Unavailable:
        """An `Unavailable` that names the socket."""
        status = SourceStatus(
            self._name, state, f"{self.path}: {reason}", self._remedy if remedy is None else remedy
        )
        return Unavailable(status)

    def _try_to_connect(self) -> None:
        """A plain connect(2): its errno says what gRPC would not."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as trial:
            trial.settimeout(_TIMEOUT_S)
            try:
                trial.connect(self.path)
            except ConnectionRefusedError:
                raise self.unavailable(State.GONE, "nobody listens on it") from None
            except TimeoutError:
                raise self.unavailable(State.FAILED, "it accepts no connection") from None
            except OSError as error:  # also a path that is too long for a socket's address
                raise self.unavailable(state_of(error), error.strerror or str(error)) from None

    def call(
        self,
        method: str,
        request: Any,
        answer: Any,
        metadata: tuple[tuple[str, str], ...] = (),
        timeout_s: float | None = None,
    ) -> Any:
        """One call, its answer as the class ``answer``. Raises `CallFailed`."""
        import grpc

        stub = self._channel.unary_unary(method)
        try:
            content = stub(request.SerializeToString(), timeout=timeout_s or _TIMEOUT_S, metadata=metadata)
        except grpc.RpcError as error:
            raise _failed(error) from None
        return read(answer, content)

    def stream(self, method: str, request: Any) -> Stream:
        """A call that is answered by many messages, for as long as both live."""
        return Stream(self._channel.unary_stream(method)(request.SerializeToString()), self._name)

    def close(self) -> None:
        """End the channel and all that goes over it. May be called twice."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None


class Stream:
    """Messages as they come, as bytes, read by a thread of its own.

    A daemon keeps for each subscriber what that one has not read yet, without a bound: so all is read
    at once, and what comes faster than it is taken is dropped here, and counted.
    """

    def __init__(self, call: Any, name: str, most: int = _MOST_WAITING) -> None:
        self._dropped = 0
        self._told = 0
        self._call = call
        self._most = most
        self._waiting: deque[bytes] = deque()
        self._ended: CallFailed | None = None
        self._bell = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        weakref.finalize(self, os.close, self._bell)
        self._thread = threading.Thread(target=self._read, name=f"cgotel-{name}-stream", daemon=True)
        self._thread.start()

    def fileno(self) -> int:
        """Readable while there is something to `take`, the end of the stream among it."""
        return self._bell

    def take(self) -> list[bytes]:
        """The messages that came since the last time.

        Raises `CallFailed` where the stream has ended and all that came before was taken.
        """
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._bell)
        ended = self._ended  # looked at first: what came before the end is waiting by then
        taken = [self._waiting.popleft() for _ in range(len(self._waiting))]
        if ended is not None:
            os.eventfd_write(self._bell, 1)
            if not taken:
                raise ended
        return taken

    def dropped(self) -> int:
        """How many messages were dropped since this was asked last."""
        dropped = self._dropped
        new, self._told = dropped - self._told, dropped
        return new

    def close(self) -> None:
        """End the call."""
        self._call.cancel()
        self._thread.join(_TIMEOUT_S)

    def _read(self) -> None:
        import grpc

        ended = CallFailed("OK", "it ended the stream")
        try:
            for message in self._call:
                self._keep(message)
        except grpc.RpcError as error:
            ended = _failed(error)
        except Exception as error:  # noqa: BLE001 - whoever waits must hear of it
            ended = CallFailed("UNKNOWN", f"{type(error).__name__}: {error}")
        self._ended = ended
        os.eventfd_write(self._bell, 1)

    def _keep(self, message: bytes) -> None:
        if len(self._waiting) >= self._most:
            self._dropped += 1
        else:
            self._waiting.append(message)
        os.eventfd_write(self._bell, 1)


def read(message: Any, content: bytes) -> Any:
    """Bytes as a message of a class. Raises `CallFailed` where they are none."""
    from google.protobuf.message import DecodeError

    try:
        return message.FromString(content)
    except DecodeError as error:
        raise CallFailed("DATA_LOSS", f"{len(content)} bytes that cannot be read: {error}") from None


def _failed(error: Any) -> CallFailed:
    return CallFailed(error.code().name, _line(error.details() or ""))


def _line(said: str) -> str:
    """A daemon's words, which may quote a container's, fit for a line of log."""
    words = " ".join(said.split())[:_LONGEST]
    return words if words.isprintable() else words.encode("unicode_escape").decode()
