"""Receivers on loopback that answer as they are told: over HTTP and over gRPC."""

from __future__ import annotations

import gzip
import queue
import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import grpc

WAIT_S = 20


@dataclass(frozen=True)
class Request:
    """What arrived; the body is decompressed."""

    path: str
    headers: dict[str, str]
    body: bytes
    connection: object = None


@dataclass(frozen=True)
class Reply:
    """What an HTTP receiver answers. ``raw`` stands for the whole answer; ``hang`` waits for the end
    of the test; ``drip`` sends one byte at a time, for ever; ``close`` ends the connection after it."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    hang: bool = False
    drip: bool = False
    close: bool = False


class _Backend:
    def __init__(self, *replies):
        self.replies = deque(replies)
        self.requests: queue.Queue[Request] = queue.Queue()
        self.released = threading.Event()

    def next(self) -> Request:
        """The next request that arrived, or will."""
        return self.requests.get(timeout=WAIT_S)

    def reply(self):
        return self.replies.popleft() if self.replies else None


class HttpBackend(_Backend):
    """Gives its replies in order, then plain successes."""

    def __init__(self, *replies, context=None):
        super().__init__(*replies)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._server.block_on_close = True
        if context is not None:
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.port = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"

    def __enter__(self):
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        return self

    def __exit__(self, *_):
        self.released.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _handler(backend):  # noqa: N805
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            timeout = WAIT_S

            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                if self.headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                headers = {name.lower(): value for name, value in self.headers.items()}
                backend.requests.put(Request(self.path, headers, body, self.client_address))
                self._answer(backend.reply() or Reply())

            def _answer(self, reply):
                self.close_connection = reply.close or reply.raw is not None or reply.hang or reply.drip
                if reply.hang:
                    backend.released.wait(WAIT_S)
                elif reply.drip:
                    self._drip()
                elif reply.raw is not None:
                    self.wfile.write(reply.raw)
                else:
                    self.send_response(reply.status)
                    for name, value in {"content-type": "application/x-protobuf", **reply.headers}.items():
                        self.send_header(name, value)
                    self.send_header("content-length", str(len(reply.body)))
                    self.end_headers()
                    self.wfile.write(reply.body)

            def _drip(self):
                self.wfile.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n")
                try:
                    while not backend.released.wait(0.01):
                        self.wfile.write(b".")
                except OSError:
                    pass

            def log_message(self, *_):
                pass

        return Handler


@dataclass(frozen=True)
class Status:
    """What a gRPC receiver answers in place of a response."""

    code: grpc.StatusCode
    details: str = ""
    metadata: tuple = ()
    hang: bool = False


class GrpcBackend(_Backend):
    """Gives its replies in order (`Status`, or the bytes of a response), then empty responses."""

    def __init__(self, *replies, credentials=None, options=()):
        super().__init__(*replies)
        self._pool = ThreadPoolExecutor(4)
        self._server = grpc.server(self._pool, options=options)
        self._server.add_generic_rpc_handlers((self._Service(self),))
        if credentials is None:
            self.port = self._server.add_insecure_port("127.0.0.1:0")
        else:
            self.port = self._server.add_secure_port("127.0.0.1:0", credentials)
        self.url = f"http://127.0.0.1:{self.port}"

    def __enter__(self):
        self._server.start()
        return self

    def __exit__(self, *_):
        self.released.set()
        self._server.stop(0).wait()
        self._pool.shutdown()

    class _Service(grpc.GenericRpcHandler):
        def __init__(self, backend):
            self._backend = backend

        def service(self, details):
            def answer(body, context):
                headers = dict(context.invocation_metadata())
                self._backend.requests.put(Request(details.method, headers, body, context.peer()))
                reply = self._backend.reply() or b""
                if isinstance(reply, bytes):
                    return reply
                if reply.hang:
                    self._backend.released.wait(WAIT_S)
                context.set_trailing_metadata(reply.metadata)
                return context.abort(reply.code, reply.details)

            return grpc.unary_unary_rpc_method_handler(answer)
