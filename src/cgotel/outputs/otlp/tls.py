"""The TLS files of a target, read and looked through before anything connects."""

from __future__ import annotations

import ssl

from cgotel.config import ConfigError
from cgotel.outputs.otlp.environment import shown
from cgotel.outputs.otlp.settings import Tls


def context_of(tls: Tls) -> ssl.SSLContext:
    """What OpenSSL makes of the files. Raises `ConfigError` for one that cannot be used."""
    try:
        context = ssl.create_default_context(cafile=tls.certificate)
        if tls.client_certificate:
            # a password is never asked for: nobody sits before an agent
            context.load_cert_chain(tls.client_certificate, tls.client_key, password="")
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError; a NUL in a path a ValueError
        raise ConfigError(f"TLS files of OTLP ({_named(tls)}): {_reason(error)}") from None
    return context


def content(path: str | None) -> bytes | None:
    """A file as it stands. Raises `ConfigError`."""
    if path is None:
        return None
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise ConfigError(f"TLS file of OTLP {shown(path)}: {error.strerror}") from None


def _named(tls: Tls) -> str:
    return ", ".join(map(shown, filter(None, (tls.certificate, tls.client_certificate, tls.client_key))))


def _reason(error: OSError | ValueError) -> str:
    return getattr(error, "strerror", None) or str(error)
