"""The families of cgroups, which decide how a metric is called.

A cgroup that is a container keeps the `container.*` names of the semantic conventions where they
exist, a Kubernetes pod the `k8s.pod.*` ones; everything else is `cgroup.*`. So each table is made
once for each `Family`.
"""

from __future__ import annotations

from cgotel.collectors.instruments import Instruments

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


class Family(Instruments):
    """Makes the instruments of one family of cgroups, each name once."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self._conventions = _CONVENTIONS.get(name, frozenset())

    def full_name(self, name: str) -> str:
        return f"{self.name if name in self._conventions else 'cgroup'}.{name}"
