"""Energy and power by the processors' own counters, RAPL, in /sys/class/powercap."""

from __future__ import annotations

from cgotel.collectors.rapl.collector import RaplCollector
from cgotel.hookspecs import hookimpl


@hookimpl
def cgotel_collectors() -> list[type[RaplCollector]]:
    return [RaplCollector]
