"""Where OTLP goes and how: ``[outputs.otlp]`` before the environment before the specification's defaults."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

import msgspec

from cgotel.config import ConfigError
from cgotel.contract import Settings
from cgotel.outputs.otlp.endpoint import Endpoint, of_grpc, of_http
from cgotel.outputs.otlp.environment import LONGEST_S, Environment, shown
from cgotel.outputs.otlp.headers import checked
from cgotel.outputs.otlp.signals import LOGS, METRICS, Signal

PROTOCOLS = ("http/protobuf", "grpc")
COMPRESSIONS = ("gzip", "none")
TEMPORALITIES = ("cumulative", "delta", "lowmemory")

_MIB = 1024 * 1024
_DEFAULT_TIMEOUT_S = 10.0

Seconds = Annotated[float, msgspec.Meta(gt=0, le=LONGEST_S)]
"""A time to wait: every clock and every lock can count as far."""

Headers = Annotated[dict[str, str], msgspec.Meta(extra={"secret": True})]


class OtlpConfig(Settings, frozen=True):
    """``[outputs.otlp]``; what is not set here is taken from the ``OTEL_*`` variables."""

    endpoint: str | None = None
    """Base URL of the receiver; over HTTP, ``/v1/metrics`` and ``/v1/logs`` are appended."""
    metrics_endpoint: str | None = None
    """URL for metrics, used as it is."""
    logs_endpoint: str | None = None
    """URL for log events, used as it is."""
    protocol: str | None = None
    """``http/protobuf`` (default) or ``grpc``."""
    headers: Headers | None = None
    """Sent with every request. Never logged."""
    timeout: Seconds | None = None
    """Seconds that a request may take, a day at most; 10 by default."""
    compression: str | None = None
    """``gzip`` (default) or ``none``."""
    certificate: str | None = None
    """File with the certificates that the receiver's is checked against; unset: the system's."""
    client_key: str | None = None
    """File with the private key of `client_certificate`."""
    client_certificate: str | None = None
    """File with the certificate that the agent shows to the receiver."""
    insecure: bool | None = None
    """Without TLS, where a gRPC endpoint has no scheme that says so."""
    temporality: str | None = None
    """``cumulative`` (default), ``delta``, or ``lowmemory``, which is cumulative for what is observed."""
    resource: dict[str, str | int | float | bool] = msgspec.field(default_factory=dict)
    """Attributes for every resource; an entity's own stand before them."""
    request_bytes: Annotated[int, msgspec.Meta(ge=65_536, le=64 * _MIB)] = _MIB
    """Size of a request before compression. Receivers take 4 MiB; the memory of the agent follows it."""
    queue_bytes: Annotated[int, msgspec.Meta(ge=65_536)] = 8 * _MIB
    """Compressed requests kept for a receiver that does not take them; the oldest are dropped."""
    retry_for: Seconds = 300.0
    """Seconds that a request is tried again before it is dropped, a day at most."""

    def __post_init__(self) -> None:
        for name, value, allowed in (
            ("protocol", self.protocol, PROTOCOLS),
            ("compression", self.compression, COMPRESSIONS),
            ("temporality", self.temporality, TEMPORALITIES),
        ):
            if value is not None and value not in allowed:
                raise ValueError(f"{name} = {shown(value)}: must be {' or '.join(allowed)}")


@dataclass(frozen=True, slots=True)
class Tls:
    """Files in PEM."""

    certificate: str | None = None
    client_key: str | None = None
    client_certificate: str | None = None


@dataclass(frozen=True, slots=True)
class Target:
    """Where one signal goes, and how."""

    signal: Signal
    protocol: str
    endpoint: Endpoint
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout_s: float = _DEFAULT_TIMEOUT_S
    gzip: bool = True
    tls: Tls = Tls()

    def __str__(self) -> str:
        compression = "gzip" if self.gzip else "not compressed"
        return f"{self.signal.name} to {self.endpoint} ({self.protocol}, {compression}, {self.timeout_s:g} s)"


@dataclass(frozen=True, slots=True)
class Plan:
    """What to export. A signal without a target is switched off."""

    metrics: Target | None
    logs: Target | None
    delta: bool
    resource: Mapping[str, str | int | float | bool]
    notes: tuple[str, ...] = ()
    """What the user should know of how the environment was read."""


def resolve(config: OtlpConfig, environ: Mapping[str, str] = os.environ) -> Plan:
    """Everything decided. Raises `ConfigError` with one line that names the variable or key."""
    environment = Environment(environ)
    preference = environment.find("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE")
    temporality = config.temporality or environment.choice(preference, TEMPORALITIES)
    return Plan(
        _target(METRICS, config.metrics_endpoint, config, environment),
        _target(LOGS, config.logs_endpoint, config, environment),
        temporality == "delta",
        {**environment.resource(), **config.resource},
        tuple(_notes(config, environment)),
    )


def _target(signal: Signal, own: str | None, config: OtlpConfig, environment: Environment) -> Target | None:
    if not environment.exports(signal):
        return None
    asked = environment.exporter(signal, "PROTOCOL")
    protocol = config.protocol or environment.choice(asked, PROTOCOLS) or PROTOCOLS[0]
    compression = environment.choice(environment.exporter(signal, "COMPRESSION"), COMPRESSIONS)
    timeout_s = environment.seconds(environment.exporter(signal, "TIMEOUT"))
    headers = environment.pairs(environment.exporter(signal, "HEADERS"))
    return Target(
        signal,
        protocol,
        _endpoint(signal, own, protocol, config, environment),
        checked(headers or {} if config.headers is None else config.headers, protocol),
        config.timeout or timeout_s or _DEFAULT_TIMEOUT_S,
        (config.compression or compression) != "none",
        _tls(signal, config, environment),
    )


def _endpoint(
    signal: Signal, own: str | None, protocol: str, config: OtlpConfig, environment: Environment
) -> Endpoint:
    """The endpoint of one signal: its own is used as it is, a base has the signal's path appended."""
    signal_variable = environment.find(f"OTEL_EXPORTER_OTLP_{signal.name.upper()}_ENDPOINT")
    base_variable = environment.find("OTEL_EXPORTER_OTLP_ENDPOINT")
    candidates = (
        (f"[outputs.otlp] {signal.name}_endpoint", own, False),
        ("[outputs.otlp] endpoint", config.endpoint, True),
        (*signal_variable, False) if signal_variable else ("", None, False),
        (*base_variable, True) if base_variable else ("", None, True),
    )
    default = "http://localhost:4317" if protocol == "grpc" else "http://localhost:4318"
    origin, url, is_base = next((c for c in candidates if c[1]), ("default endpoint", default, True))
    assert url is not None
    if protocol == "grpc":
        insecure = environment.flag(environment.exporter(signal, "INSECURE"))
        return of_grpc(origin, url, insecure if config.insecure is None else config.insecure)
    return of_http(origin, url, signal.path if is_base else "")


def _tls(signal: Signal, config: OtlpConfig, environment: Environment) -> Tls:
    tls = Tls(
        config.certificate or environment.text(signal, "CERTIFICATE"),
        config.client_key or environment.text(signal, "CLIENT_KEY"),
        config.client_certificate or environment.text(signal, "CLIENT_CERTIFICATE"),
    )
    if tls.client_key and not tls.client_certificate:
        raise ConfigError("OTLP client_key is set without client_certificate: it would never be used")
    return tls


def _notes(config: OtlpConfig, environment: Environment) -> list[str]:
    notes = []
    if environment.flag(environment.find("OTEL_SDK_DISABLED")):
        notes.append("OTEL_SDK_DISABLED=true: nothing is exported")
    if environment.find("OTEL_CONFIG_FILE"):
        notes.append("OTEL_CONFIG_FILE is not supported and ignored; use --config")
    found = environment.exporter(METRICS, "TIMEOUT")
    if found and config.timeout is None:
        notes.append(f"{found.variable}={shown(found.value)} is read as {environment.seconds(found):g} s")
    return notes
