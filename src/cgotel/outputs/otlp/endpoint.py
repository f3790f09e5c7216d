"""Endpoints: what an URL of the configuration means for HTTP and for gRPC.

Source: opentelemetry-specification, protocol/exporter.md ("Endpoint URLs for OTLP/HTTP", "Insecure").
"""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import SplitResult, urlsplit

from cgotel.config import ConfigError

_SCHEMES = ("http", "https")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A receiver. ``str()`` is fit for a log: without a query, which may hold a token."""

    secure: bool
    authority: str
    """Host and port; over gRPC, a name of the form that gRPC knows (``unix:/path``)."""
    host: str = ""
    port: int = 0
    path: str = ""
    query: str = field(default="", repr=False)

    def __str__(self) -> str:
        return f"{'https' if self.secure else 'http'}://{self.authority}{self.path}"


def of_http(origin: str, url: str, append: str) -> Endpoint:
    """The endpoint of an HTTP URL, with a path appended to a base. Raises `ConfigError`."""
    parts, port = _split(origin, url)
    if parts.scheme not in _SCHEMES or not parts.hostname:
        raise ConfigError(f"{origin}: must be an URL such as http://localhost:4318")
    secure = parts.scheme == "https"
    path = parts.path.rstrip("/") + append if append else parts.path
    return Endpoint(
        secure, parts.netloc, parts.hostname, port or (443 if secure else 80), path or "/", parts.query
    )


def of_grpc(origin: str, url: str, insecure: bool | None) -> Endpoint:
    """The target of a gRPC channel. Raises `ConfigError`.

    ``https`` and ``http`` say whether there is TLS; without a scheme ``insecure`` does, and any form
    that gRPC knows is taken (``host:port``, ``dns:///host:port``, ``unix:/path``).
    """
    parts, _ = _split(origin, url if "//" in url or url.startswith("unix:") else f"//{url}")
    if parts.scheme in _SCHEMES:
        if not parts.hostname:
            raise ConfigError(f"{origin}: must be an URL such as http://localhost:4317")
        return Endpoint(parts.scheme == "https", parts.netloc, parts.hostname)
    return Endpoint(not insecure, url, parts.hostname or "")


def is_host(name: str) -> bool:
    """Whether a name can be asked for at all: no label is empty or longer than 63 (RFC 1035, 2.3.4)."""
    try:
        return bool(name.encode("idna"))
    except UnicodeError:
        return False


def _split(origin: str, url: str) -> tuple[SplitResult, int | None]:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ConfigError(f"{origin}: not an URL, or its port is no number") from None
    if parts.username is not None or parts.password is not None:
        raise ConfigError(f"{origin}: must not hold a user or password; use OTEL_EXPORTER_OTLP_HEADERS")
    if not url.isascii() or not url.isprintable() or " " in url:
        raise ConfigError(f"{origin}: must be printable ASCII without spaces")
    if parts.hostname is not None and not is_host(parts.hostname):
        raise ConfigError(f"{origin}: its host name cannot be looked up")
    return parts, port
