"""``[watchers.probes]``: what is asked, how often, and for whom."""

from __future__ import annotations

import shlex
from typing import Annotated, Literal
from urllib.parse import SplitResult, urlsplit

import msgspec

from cgotel.contract import Settings, WatcherSettings

_Text = Annotated[str, msgspec.Meta(min_length=1, max_length=1000)]

HostAndPort = tuple[str, int]


class Probe(Settings, frozen=True):
    """One ``[[watchers.probes.probe]]``."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
    """What it is called; each name once."""
    kind: Literal["http", "tcp", "command"]
    """http: a GET is answered with 200 to 399. tcp: a connection is taken. command: it exits with 0."""
    target: _Text | Annotated[tuple[_Text, ...], msgspec.Meta(min_length=1)]
    """A URL; HOST:PORT; a program with its arguments, as text or as an array. No shell looks at it."""
    workload: _Text
    """For whom it speaks: a container's name or id, a unit, or a cgroup's path (``/system.slice/...``)."""
    interval: Annotated[float, msgspec.Meta(ge=0.1, le=86400)] = 10.0
    """Seconds from one start to the next."""
    timeout: Annotated[float, msgspec.Meta(ge=0.01, le=3600)] = 3.0
    """Seconds until an attempt has failed."""
    threshold: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 3
    """Failures in a row from which on it is meant to be taken for unhealthy."""
    insecure: bool = False
    """https: take any certificate."""

    def __post_init__(self) -> None:
        if self.kind == "http":
            self.url()
        elif self.kind == "tcp":
            self.address()
        else:
            self.command()

    def url(self) -> SplitResult:
        """The target as a URL. Raises ValueError where it is none."""
        try:
            url = urlsplit(self._line())
            usable = url.scheme in ("http", "https") and url.hostname and (url.port is None or url.port > 0)
        except ValueError:
            usable = False
        if not usable:
            raise ValueError(f"target must be a URL like http://127.0.0.1:8080/health, not {self.target!r}")
        if url.username is not None:
            raise ValueError("target must hold no user and no password")
        return url

    def address(self) -> HostAndPort:
        """The target as a host and a port. Raises ValueError where it is none."""
        host, colon, port = self._line().rpartition(":")
        host = host.removeprefix("[").removesuffix("]")
        if not (colon and host and port.isascii() and port.isdigit() and 0 < int(port) < 65536):
            raise ValueError(f"target must be HOST:PORT, not {self.target!r}")
        return host, int(port)

    def command(self) -> tuple[str, ...]:
        """The target as a program and its arguments. Raises ValueError where it is none."""
        words = tuple(shlex.split(self.target)) if isinstance(self.target, str) else self.target
        if not words or not all(words) or "\0" in "".join(words):
            raise ValueError(f"target must be a program and its arguments, not {self.target!r}")
        return words

    def _line(self) -> str:
        if not isinstance(self.target, str) or not self.target.isprintable() or " " in self.target:
            raise ValueError(f"target must be one piece of text for kind {self.kind!r}")
        return self.target


class ProbesSettings(WatcherSettings, frozen=True):
    """``[watchers.probes]``."""

    probe: Annotated[tuple[Probe, ...], msgspec.Meta(max_length=200)] = ()
    """The probes."""

    def __post_init__(self) -> None:
        names = [probe.name for probe in self.probe]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"two probes are called {twice!r}")
