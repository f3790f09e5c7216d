"""The proxy that http_proxy, https_proxy and no_proxy name for an endpoint."""

from __future__ import annotations

import base64
import os
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies_environment, proxy_bypass

from cgotel.config import ConfigError
from cgotel.outputs.otlp.endpoint import Endpoint, is_host

_DEFAULT_PORT = 8080


_OF_GRPC = ("grpc_proxy", "https_proxy", "http_proxy")
"""What gRPC looks at, whatever the scheme (grpc, doc/environment_variables.md)."""


@dataclass(frozen=True, slots=True)
class Proxy:
    """An HTTP proxy, and what it wants to be told."""

    host: str
    port: int
    headers: dict[str, str] = field(default_factory=dict, repr=False)


def proxy_for(endpoint: Endpoint) -> Proxy | None:
    """The proxy on the way to an endpoint, None for the direct way. Raises `ConfigError`."""
    proxies = getproxies_environment()
    scheme = "https" if endpoint.secure else "http"
    url = proxies.get(scheme)
    if not url or proxy_bypass(endpoint.host):
        return None
    try:
        parts = urlsplit(url if "//" in url else f"//{url}")
        port = parts.port or _DEFAULT_PORT
    except ValueError:
        parts, port = urlsplit(""), _DEFAULT_PORT
    if parts.hostname is None or parts.scheme not in ("", "http") or not is_host(parts.hostname):
        raise ConfigError(f"{scheme}_proxy: must be an URL such as http://proxy:8080")
    headers = {}
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        headers["proxy-authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
    return Proxy(parts.hostname, port, headers)


def check_proxy_of_grpc(endpoint: Endpoint) -> None:
    """Raise `ConfigError` for a proxy that gRPC would leave aside and go the direct way."""
    variable = next((name for name in _OF_GRPC if os.environ.get(name)), None)
    if variable is None or not endpoint.host or proxy_bypass(endpoint.host):
        return
    url = os.environ[variable]
    if urlsplit(url).scheme != "http":
        raise ConfigError(f"{variable}: must be an URL such as http://proxy:8080")
