"""Stands in for the daemon's module where a test is about what cgotel does, not about the daemon."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from cgotel.outputs.collectd.types import TYPES


def node(key: str, *values: Any, children: tuple[Any, ...] = ()) -> SimpleNamespace:
    """A line of the configuration, or a block."""
    return SimpleNamespace(key=key, values=values, children=children)


class FakeCollectd:
    """Keeps what it is told. ``types`` are those that it knows."""

    def __init__(self, types: Any = TYPES) -> None:
        self.types = set(types)
        self.logged: list[tuple[str, str]] = []
        self.reads: list[tuple[Any, float | None]] = []
        self.values: list[dict[str, Any]] = []
        self.notifications: list[dict[str, Any]] = []

    def error(self, message: str) -> None:
        self.logged.append(("error", message))

    def warning(self, message: str) -> None:
        self.logged.append(("warning", message))

    def info(self, message: str) -> None:
        self.logged.append(("info", message))

    def register_read(self, callback: Any, interval: float | None = None, *, name: str) -> str:
        self.reads.append((callback, interval))
        return name

    def get_dataset(self, name: str) -> object:
        if name not in self.types:
            raise TypeError(f"Dataset {name} not found")
        return []

    def Values(self, **common: Any) -> SimpleNamespace:
        return SimpleNamespace(dispatch=lambda **rest: self.values.append(common | rest))

    def Notification(self, **fields: Any) -> SimpleNamespace:
        return SimpleNamespace(dispatch=lambda: self.notifications.append(fields))

    def said(self, level: str) -> str:
        """Everything logged at a level."""
        return "\n".join(message for name, message in self.logged if name == level)
