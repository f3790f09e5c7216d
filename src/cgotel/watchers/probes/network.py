"""Attempts over the network: a connection that is taken, a request that is answered."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import SplitResult

from cgotel import __version__
from cgotel.watchers.probes.attempt import LONGEST_TEXT, Connections, Outcome

if TYPE_CHECKING:
    from http.client import HTTPConnection


class TcpAttempt:
    """A connection is taken; nothing is sent."""

    def __init__(self, host: str, port: int, timeout_s: float) -> None:
        self._address = host, port
        self._timeout_s = timeout_s
        self._connections = Connections()

    def run(self) -> Outcome:
        """Connect. Raises OSError."""
        with self._connections.connect(*self._address, self._timeout_s):
            return Outcome(True)

    def cancel(self) -> None:
        """End the connection."""
        self._connections.cancel()


class HttpAttempt:
    """A GET is answered with a status from 200 to 399, as the kubelet wants it.

    Redirects are answers, and not followed; no proxy is used; the body is not read.
    """

    def __init__(self, url: SplitResult, timeout_s: float, insecure: bool = False) -> None:
        self._url = url
        self._timeout_s = timeout_s
        self._insecure = insecure
        self._connections = Connections()

    def run(self) -> Outcome:
        """Ask. Raises OSError and http.client.HTTPException."""
        from http.client import HTTPConnection

        host, port = self._url.hostname or "", self._url.port
        secure = self._url.scheme == "https"
        talk = HTTPConnection(host, port or (443 if secure else 80), timeout=self._timeout_s)
        talk.sock = self._connections.connect(host, talk.port, self._timeout_s)
        try:
            if secure:
                self._secure(talk, host)
            talk.putrequest("GET", self._path(), skip_host=True, skip_accept_encoding=True)
            talk.putheader("Host", self._url.netloc)
            talk.putheader("User-Agent", f"cgotel/{__version__}")
            talk.putheader("Accept", "*/*")
            talk.putheader("Connection", "close")
            talk.endheaders()
            with talk.getresponse() as answer:  # holds the connection, too
                text = f"{answer.status} {answer.reason}".strip()
                return Outcome(200 <= answer.status < 400, text[:LONGEST_TEXT])
        finally:
            talk.close()

    def cancel(self) -> None:
        """End the connection."""
        self._connections.cancel()

    def _secure(self, talk: HTTPConnection, host: str) -> None:
        import ssl

        context = ssl.create_default_context()
        if self._insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        talk.sock = context.wrap_socket(talk.sock, server_hostname=host, do_handshake_on_connect=False)
        self._connections.hold(talk.sock)
        talk.sock.do_handshake()

    def _path(self) -> str:
        path = self._url.path or "/"
        return f"{path}?{self._url.query}" if self._url.query else path
