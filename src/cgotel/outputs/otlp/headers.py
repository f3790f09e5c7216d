"""Headers that a request may carry, over either protocol."""

from __future__ import annotations

import re
from collections.abc import Mapping

from cgotel.config import ConfigError
from cgotel.outputs.otlp.environment import shown

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""RFC 9110, 5.6.2."""

_METADATA_KEY = re.compile(r"(?!.*-bin$)[0-9a-z_.-]+")
"""PROTOCOL-HTTP2.md of gRPC, "Custom-Metadata", once in lower case."""


def checked(headers: Mapping[str, str], protocol: str) -> Mapping[str, str]:
    """The headers. Raises `ConfigError`, which shows no value."""
    for name, value in headers.items():
        if not _TOKEN.fullmatch(name):
            raise ConfigError(f"OTLP header {shown(name)}: the name must be a token of RFC 9110")
        if protocol == "grpc" and not _METADATA_KEY.fullmatch(name.lower()):
            raise ConfigError(
                f"OTLP header {shown(name)}: over gRPC a name is of letters, digits, '_', '.' and '-', "
                "and does not end in -bin"
            )
        if not value.isascii() or not (value + "x").isprintable():
            raise ConfigError(f"OTLP header {shown(name)}: the value must be printable ASCII")
    return headers
