"""Making a collector's instruments, each name once."""

from __future__ import annotations

from typing import Literal, TypeAlias

from cgotel.model import Instrument

Kind: TypeAlias = Literal["counter", "updowncounter", "gauge"]


class Instruments:
    """Makes instruments and keeps them: a name that was made before gives the same one."""

    def __init__(self) -> None:
        self.instruments: dict[str, Instrument] = {}

    def full_name(self, name: str) -> str:
        """How a metric is called in full; a subclass may put a prefix before ``name``."""
        return name

    def counter(
        self, name: str, unit: str, description: str, number: Literal["int", "double"] = "int"
    ) -> Instrument:
        return self.make("counter", name, unit, description, number)

    def updown(
        self, name: str, unit: str, description: str, number: Literal["int", "double"] = "int"
    ) -> Instrument:
        return self.make("updowncounter", name, unit, description, number)

    def gauge(
        self, name: str, unit: str, description: str, number: Literal["int", "double"] = "int"
    ) -> Instrument:
        return self.make("gauge", name, unit, description, number)

    def make(
        self,
        kind: Kind,
        name: str,
        unit: str,
        description: str,
        number: Literal["int", "double"] = "int",
    ) -> Instrument:
        full = self.full_name(name)
        return self.instruments.setdefault(full, Instrument(full, kind, unit, description, number))


def linux(area: str, name: str) -> str:
    """The name of a fact of Linux that the semantic conventions have no metric for.

    ``linux("memory", "oom_kills")`` is ``system.memory.linux.oom_kills``: their own pattern for what
    one operating system alone knows, so that a later convention changes as little as can be.
    """
    return f"system.{area}.linux.{name}"
