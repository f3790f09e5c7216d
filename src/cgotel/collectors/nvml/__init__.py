"""NVIDIA GPUs through the driver's management library, and their memory by container."""

from __future__ import annotations

from cgotel.collectors.nvml.collector import NvmlCollector
from cgotel.hookspecs import hookimpl


@hookimpl
def cgotel_collectors() -> list[type[NvmlCollector]]:
    return [NvmlCollector]
