"""What is used of the ``collectd`` module, which exists only within the daemon."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from cgotel.outputs.collectd.types import OWN, TYPES
from cgotel.outputs.text import visible


class Dispatched(Protocol):
    """A ``collectd.Values`` or a ``collectd.Notification``."""

    def dispatch(
        self,
        *,
        type: str = ...,  # noqa: A002 - collectd's own word
        type_instance: str = ...,
        values: Sequence[int | float] = ...,
    ) -> None:
        """Hand it to the daemon."""


class Daemon(Protocol):
    """The ``collectd`` module."""

    def error(self, message: str) -> None: ...
    def warning(self, message: str) -> None: ...
    def info(self, message: str) -> None: ...
    def register_read(self, callback: Callable[[], None], interval: float = ..., *, name: str) -> str: ...
    def get_dataset(self, name: str) -> object: ...
    def Values(  # noqa: N802 - collectd's own word
        self, *, plugin: str, plugin_instance: str, time: float, interval: float, meta: Mapping[str, str]
    ) -> Dispatched: ...
    def Notification(  # noqa: N802 - collectd's own word
        self,
        *,
        plugin: str,
        plugin_instance: str,
        type: str,  # noqa: A002 - collectd's own word
        type_instance: str,
        message: str,
        severity: int,
        time: float,
        meta: Mapping[str, str | int | float | bool],
    ) -> Dispatched: ...


class DaemonLog(logging.Handler):
    """Log lines in the daemon's log, one line each, under its severities."""

    def __init__(self, daemon: Daemon) -> None:
        super().__init__(logging.INFO)
        self._daemon = daemon

    def emit(self, record: logging.LogRecord) -> None:
        line = f"cgotel: {visible(record.getMessage())}"
        if record.levelno >= logging.ERROR:
            self._daemon.error(line)
        elif record.levelno >= logging.WARNING:
            self._daemon.warning(line)
        else:
            self._daemon.info(line)


def missing_types(daemon: Daemon) -> list[str]:
    """The types that are used and that the daemon does not know, in their order."""
    return [name for name in TYPES if not _knows(daemon, name)]


def advice(missing: Iterable[str]) -> str:
    """What to do about missing types."""
    names = list(missing)
    stock = [name for name in names if name not in OWN]
    remedy = (
        "name collectd's own file in TypesDB as well: where one is named, it is not read by itself"
        if stock
        else "name cgotel.types.db in TypesDB, after collectd's own file"
    )
    return f"no TypesDB holds {', '.join(names)}; values of these types are left out; {remedy}"


def _knows(daemon: Daemon, name: str) -> bool:
    try:
        daemon.get_dataset(name)
    except Exception:  # noqa: BLE001 - TypeError; in 5.12 its message may be no text, and fail itself
        return False
    return True
