"""OTLP over HTTP: one kept connection, one POST a request."""

from __future__ import annotations

import json
import re
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from email.utils import parsedate_to_datetime
from http.client import (
    BadStatusLine,
    HTTPConnection,
    HTTPException,
    HTTPResponse,
    HTTPSConnection,
    IncompleteRead,
)
from socket import SHUT_RDWR, socket
from typing import NamedTuple

from cgotel import __version__
from cgotel.outputs.otlp.answer import (
    Answer,
    delivered,
    partial_success,
    refused,
    retry,
    shown,
    status_message,
    too_large,
)
from cgotel.outputs.otlp.batch import Batch
from cgotel.outputs.otlp.environment import LONGEST_S
from cgotel.outputs.otlp.proxy import Proxy, proxy_for
from cgotel.outputs.otlp.settings import Target
from cgotel.outputs.otlp.tls import context_of

_RETRYABLE = frozenset({429, 502, 503, 504})
_TOO_LARGE = 413
_LONGEST_ANSWER = 64 * 1024
_DELAY_SECONDS = re.compile(r"\s*[0-9]+\s*", re.ASCII)
_FIXED_HEADERS = frozenset({"content-type", "content-encoding", "content-length", "host", "connection"})


class _Response(NamedTuple):
    status: int
    said: str
    content_type: str
    retry_after: str | None
    body: bytes


class HttpTransport:
    """Posts requests to one URL. Redirects are not followed: a POST would lose its body on the way."""

    def __init__(self, target: Target, wall_clock: Callable[[], float] = time.time) -> None:
        self._target = target
        self._wall_clock = wall_clock
        self._context = context_of(target.tls) if target.endpoint.secure else None
        self._proxy = proxy_for(target.endpoint)
        self._path = _request_target(target, self._proxy)
        self._headers = _headers(target, self._proxy)
        self._connection: HTTPConnection | None = None
        self._connecting: HTTPConnection | None = None
        self._closed = False

    def send(self, batch: Batch, timeout_s: float) -> Answer:
        """One request and its answer, within ``timeout_s`` seconds. See `Transport.send`."""
        deadline = time.monotonic() + timeout_s
        try:
            response = self._exchange(batch.packed if self._target.gzip else batch.body(), deadline)
        except (OSError, HTTPException) as error:
            self._disconnect()
            late = isinstance(error, TimeoutError) or time.monotonic() >= deadline
            return retry(f"no answer within {timeout_s:g} s" if late else _reason(error))
        except BaseException:
            self._disconnect()  # in whatever state it is: the next request begins anew
            raise
        return self._judged(response)

    def close(self) -> None:
        """End the connection, and the request that waits for its answer."""
        self._closed = True
        connecting, connection = self._connecting, self._connection
        if connecting is not None and connecting.sock is not None:
            _shut(connecting.sock)  # whoever makes it closes it
        if connection is not None:
            if connection.sock is not None:
                _shut(connection.sock)
            connection.close()

    def _exchange(self, body: bytes, deadline: float) -> _Response:
        """A kept connection may have been closed by the receiver since: then once more on a new one."""
        if self._connection is not None:
            try:
                return self._post(self._connection, body, deadline)
            except (ConnectionError, ssl.SSLError):
                self._disconnect()
                if time.monotonic() >= deadline:
                    raise
        return self._post(self._connect(deadline), body, deadline)

    def _connect(self, deadline: float) -> HTTPConnection:
        """A connection is kept once it is one; until then only `close` knows of it."""
        connection = self._connecting = self._unconnected(deadline)
        try:
            connection.connect()
            self._connection = connection
        except BaseException:
            connection.close()
            raise
        finally:
            self._connecting = None
        return connection

    def _unconnected(self, deadline: float) -> HTTPConnection:
        endpoint, proxy = self._target.endpoint, self._proxy
        host, port = (proxy.host, proxy.port) if proxy else (endpoint.host, endpoint.port)
        timeout_s = max(0.001, deadline - time.monotonic())
        if self._context is not None:
            connection: HTTPConnection = HTTPSConnection(host, port, timeout=timeout_s, context=self._context)
            if proxy:
                connection.set_tunnel(endpoint.host, endpoint.port, proxy.headers)
        else:
            connection = HTTPConnection(host, port, timeout=timeout_s)
        return connection

    def _post(self, connection: HTTPConnection, body: bytes, deadline: float) -> _Response:
        if self._closed:
            raise ConnectionAbortedError("the output is closed")
        left_s = max(0.001, deadline - time.monotonic())
        connection.sock.settimeout(left_s)
        with _cut_off_after(connection.sock, left_s):
            connection.request("POST", self._path, body, self._headers)
            response = connection.getresponse()
            content = response.read(_LONGEST_ANSWER)
        if response.length and len(content) < _LONGEST_ANSWER:
            raise IncompleteRead(content, response.length)  # http.client says so to `read()` alone
        if response.will_close or not response.isclosed():
            self._disconnect()
            response.close()
        return _taken(response, content)

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _judged(self, response: _Response) -> Answer:
        """OTLP/HTTP response handling: opentelemetry-proto, docs/specification.md."""
        if 200 <= response.status < 300:
            if response.content_type == "application/json":
                return _delivered_json(response.body)
            return delivered(self._target.signal, response.body)
        if response.status in _RETRYABLE:
            return retry(response.said, _seconds(response.retry_after, self._wall_clock()))
        if response.status == _TOO_LARGE:
            return too_large(response.said)
        if 300 <= response.status < 400:
            return refused(f"{response.said}: a redirect, which is not followed")
        is_protobuf = response.content_type == "application/x-protobuf"
        message = status_message(response.body) if is_protobuf else shown(response.body)
        return refused(f"{response.said}: {message}")


def _request_target(target: Target, proxy: Proxy | None) -> str:
    endpoint = target.endpoint
    path = f"{endpoint.path}?{endpoint.query}" if endpoint.query else endpoint.path
    return f"http://{endpoint.authority}{path}" if proxy and not endpoint.secure else path


def _headers(target: Target, proxy: Proxy | None) -> dict[str, str]:
    headers = {"user-agent": f"cgotel/{__version__}"}
    headers |= {n.lower(): value for n, value in target.headers.items() if n.lower() not in _FIXED_HEADERS}
    headers |= {"host": target.endpoint.authority, "content-type": "application/x-protobuf"}
    if target.gzip:
        headers["content-encoding"] = "gzip"
    if proxy and not target.endpoint.secure:
        headers |= proxy.headers
    return headers


@contextmanager
def _cut_off_after(sock: socket, seconds: float) -> Iterator[None]:
    """A socket's own timeout starts anew with every byte; this one does not."""
    timer = threading.Timer(seconds, _shut, (sock,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _shut(sock: socket) -> None:
    with suppress(OSError):  # it may be closed already
        sock.shutdown(SHUT_RDWR)


def _taken(response: HTTPResponse, content: bytes) -> _Response:
    return _Response(
        response.status,
        f"{response.status} {response.reason}".strip(),
        response.headers.get_content_type() if "content-type" in response.headers else "",
        response.headers.get("retry-after"),
        content,
    )


def _delivered_json(body: bytes) -> Answer:
    """A success from a receiver that answers in JSON whatever was asked."""
    try:
        partial = json.loads(body or b"{}").get("partialSuccess", {})
        rejected = int(partial.get("rejectedDataPoints") or partial.get("rejectedLogRecords") or 0)
        return partial_success(rejected, str(partial.get("errorMessage", "")))
    except (ValueError, AttributeError, TypeError, OverflowError, RecursionError):
        return refused(f"the answer is not OTLP: {shown(body)}")


def _seconds(retry_after: str | None, now: float) -> float | None:
    """Retry-After: a number of seconds or a date (RFC 9110, 10.2.3)."""
    if retry_after is None:
        return None
    if _DELAY_SECONDS.fullmatch(retry_after):
        return min(float(retry_after), LONGEST_S)
    try:
        after_s = parsedate_to_datetime(retry_after).timestamp() - now
    except (ValueError, OverflowError, OSError):
        return None
    return min(max(0.0, after_s), LONGEST_S)


def _reason(error: OSError | HTTPException) -> str:
    if isinstance(error, BadStatusLine) and not isinstance(error, ConnectionError):
        return f"the answer is not HTTP: {shown(str(error).encode('latin-1', 'replace'))}"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the receiver's certificate is not trusted: {error.verify_message}"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__
