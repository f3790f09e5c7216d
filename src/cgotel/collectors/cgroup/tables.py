"""The families of cgroups, which decide how a metric is called.

A cgroup that is a container keeps the `container.*` names of the semantic conventions where they
exist, a Kubernetes pod the `k8s.pod.*` ones; everything else is `cgroup.*`. So each table is made
once for each `Family`.
"""

from __future__ import annotations

from typing import Literal

from cgotel.model import Instrument

# open-telemetry/semantic-conventions 1.44, model/container and model/k8s
_POD = frozenset(
    (
        "cpu.time",
        "cpu.usage",
        "memory.available",
        "memory.rss",
        "memory.usage",
        "memory.working_set",
        "paging.faults",
    )
)
_CONVENTIONS = {"container": _POD | {"disk.io"}, "k8s.pod": _POD}


class Family:
    """Makes the instruments of one family of cgroups, each name once."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._conventions = _CONVENTIONS.get(name, frozenset())
        self.instruments: dict[str, Instrument] = {}

    def counter(
        self, name: str, unit: str, description: str, number: Literal["int", "double"] = "int"
    ) -> Instrument:
        return self._make(name, "counter", unit, description, number)

    def updown(
        self, name: str, unit: str, description: str, number: Literal["int", "double"] = "int"
    ) -> Instrument:
        return self._make(name, "updowncounter", unit, description, number)

    def gauge(
        self, name: str, unit: str, description: str, number: Literal["int", "double"] = "int"
    ) -> Instrument:
        return self._make(name, "gauge", unit, description, number)

    def _make(
        self,
        name: str,
        kind: Literal["counter", "updowncounter", "gauge"],
        unit: str,
        description: str,
        number: Literal["int", "double"],
    ) -> Instrument:
        full = f"{self.name if name in self._conventions else 'cgroup'}.{name}"
        return self.instruments.setdefault(full, Instrument(full, kind, unit, description, number))
