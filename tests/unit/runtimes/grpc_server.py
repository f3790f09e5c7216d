"""A real gRPC server on a Unix socket, with methods that a test writes: bytes in, bytes out."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self, TypeAlias

import grpc

Answer: TypeAlias = Callable[[bytes, Mapping[str, str]], bytes]


class Refused(Exception):  # noqa: N818 - an answer
    """What an answer raises to fail with a code of gRPC."""

    def __init__(self, code: grpc.StatusCode, said: str = "") -> None:
        super().__init__(said)
        self.code = code


class Server(grpc.GenericRpcHandler):
    """Listens within its ``with`` block. ``calls`` are answered, ``streams`` bring what is `put` in them."""

    def __init__(self, path: Path, calls: Mapping[str, Answer], streams: tuple[str, ...] = ()) -> None:
        self.path = str(path)
        self.calls = dict(calls)
        self.asked: list[str] = []
        self.subscribed: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._streams = streams
        self._open: list[queue.SimpleQueue[bytes | None]] = []

    def __enter__(self) -> Self:
        self._server = grpc.server(ThreadPoolExecutor(8))
        self._server.add_generic_rpc_handlers((self,))
        self._server.add_insecure_port(f"unix:{self.path}")
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end_streams()
        self._server.stop(0).wait()

    def put(self, *messages: bytes) -> None:
        """Send messages to every stream that is open."""
        for stream in self._open:
            for message in messages:
                stream.put(message)

    def end_streams(self) -> None:
        """Let every stream end in good order."""
        for stream in self._open:
            stream.put(None)
        self._open.clear()

    def service(self, details: Any) -> Any:
        if details.method in self._streams:
            return grpc.unary_stream_rpc_method_handler(self._stream)
        if details.method not in self.calls:
            return None
        return grpc.unary_unary_rpc_method_handler(
            lambda request, context: self._answer(details.method, request, context)
        )

    def _answer(self, method: str, request: bytes, context: Any) -> bytes:
        self.asked.append(method)
        try:
            return self.calls[method](request, dict(context.invocation_metadata()))
        except Refused as refused:
            context.abort(refused.code, str(refused))
            raise

    def _stream(self, request: bytes, context: Any) -> Iterator[bytes]:
        messages: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        context.add_callback(lambda: messages.put(None))
        self._open.append(messages)
        self.subscribed.put(request)
        yield from iter(messages.get, None)
