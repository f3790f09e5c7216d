"""The variables of the OpenTelemetry specification, read strictly: a bad value is one clear error.

Source: opentelemetry-specification, protocol/exporter.md and configuration/sdk-environment-variables.md.
An empty variable is an unset one. No error shows a value that may hold a secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple
from urllib.parse import unquote

from cgotel.config import ConfigError
from cgotel.outputs.otlp.signals import Signal

_PREFIX = "OTEL_EXPORTER_OTLP_"
_MILLISECONDS_FROM = 1000.0

LONGEST_S = 86_400
"""A day: no request and no receiver is worth a longer wait."""


_MOST_SHOWN = 80
_SECRET = re.compile(r"@|password", re.IGNORECASE)


def shown(value: str) -> str:
    """A value for a message: its beginning, and nothing of what may hold a secret."""
    if _SECRET.search(value):
        return "(left out here: it may hold a password)"
    return repr(value) if len(value) <= _MOST_SHOWN else f"{value[:_MOST_SHOWN]!r}..."


class Found(NamedTuple):
    """A variable that is set."""

    variable: str
    value: str


class Environment:
    """Reads variables by what they mean. Every method raises `ConfigError` for a value it cannot read."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ

    def find(self, variable: str) -> Found | None:
        """A variable, if it is set and not empty."""
        value = self._environ.get(variable, "").strip()
        return Found(variable, value) if value else None

    def exporter(self, signal: Signal, option: str) -> Found | None:
        """``OTEL_EXPORTER_OTLP_<SIGNAL>_<OPTION>``, else ``OTEL_EXPORTER_OTLP_<OPTION>``."""
        return self.find(f"{_PREFIX}{signal.name.upper()}_{option}") or self.find(_PREFIX + option)

    def text(self, signal: Signal, option: str) -> str | None:
        """An option of the exporter as it stands."""
        found = self.exporter(signal, option)
        return None if found is None else found.value

    def choice(self, found: Found | None, allowed: Iterable[str]) -> str | None:
        """One of a closed list, in lower case."""
        if found is None:
            return None
        if found.value.lower() not in allowed:
            raise ConfigError(f"{found.variable}={shown(found.value)}: must be {' or '.join(allowed)}")
        return found.value.lower()

    def flag(self, found: Found | None) -> bool | None:
        """A boolean: ``true`` or ``false`` in any case."""
        value = self.choice(found, ("true", "false"))
        return None if value is None else value == "true"

    def seconds(self, found: Found | None) -> float | None:
        """A time limit. The specification says milliseconds, the Python exporters read seconds.

        From 1000 on it can only mean milliseconds; below, a limit of less than a second for a
        request over a network is not meant by anyone.
        """
        if found is None:
            return None
        try:
            number = float(found.value)
        except ValueError:
            number = 0.0
        if not 0 < number <= LONGEST_S * 1000:
            raise ConfigError(
                f"{found.variable}={shown(found.value)}: must be a positive number of milliseconds, "
                f"{LONGEST_S * 1000} at most"
            )
        return number / 1000 if number >= _MILLISECONDS_FROM else number

    def pairs(self, found: Found | None) -> dict[str, str] | None:
        """``name=value,name2=value2`` with percent-encoded values (W3C Baggage)."""
        return None if found is None else dict(_pairs(found))

    def resource(self) -> dict[str, str]:
        """OTEL_RESOURCE_ATTRIBUTES, with ``service.name`` from OTEL_SERVICE_NAME where that is set."""
        attributes = self.pairs(self.find("OTEL_RESOURCE_ATTRIBUTES")) or {}
        if service := self.find("OTEL_SERVICE_NAME"):
            attributes["service.name"] = service.value
        return attributes

    def exports(self, signal: Signal) -> bool:
        """Whether a signal is exported: not with OTEL_<SIGNAL>_EXPORTER=none, or OTEL_SDK_DISABLED=true."""
        if self.flag(self.find("OTEL_SDK_DISABLED")):
            return False
        found = self.find(f"OTEL_{signal.name.upper()}_EXPORTER")
        return self.choice(found, ("otlp", "none")) != "none"


_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z/-]+")


def _pairs(found: Found) -> Iterator[tuple[str, str]]:
    for number, entry in enumerate(found.value.split(","), 1):
        if not entry.strip():
            continue
        name, equals, value = entry.partition("=")
        name = unquote(name.strip())
        if not equals or not _TOKEN.fullmatch(name):
            raise ConfigError(f"{found.variable}: entry {number} is not name=value")
        yield name, unquote(value.strip())
