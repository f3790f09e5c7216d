"""Which metrics a GPU's figures fill: one row for each, by the name of `cgotel.nvml.gpus`.

Sources are the fields of Telegraf's `nvidia_smi` where the number is the same as there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cgotel.collectors import hardware
from cgotel.collectors.instruments import Instruments
from cgotel.model import Number, Point, Series
from cgotel.nvml.gpus import CLOCKS, REASONS, Gpu

STATES = ("ok", "lost", "reset_required", "suspended")

_NS = 10**9
_GPU = {"hw.type": "gpu"}
_KIB = 1024
_MHZ = 1_000_000
_FACTORS = {"nvlink_tx": _KIB, "nvlink_rx": _KIB, **{f"clock.{name}": _MHZ for name in CLOCKS}}


class GpuSeries:
    """The series of every figure, made once."""

    def __init__(self, make: Instruments) -> None:
        self._of = dict(_figures(make))
        self._share = make.gauge("hw.gpu.memory.utilization", "1", "Share of memory in use", "double").series(
            "hw.gpu.memory.utilization"
        )
        self._power = hardware.power(make).series("power_draw", attributes=_GPU)
        status = make.updown("nvidia.gpu.status", "1", "One for the state that the GPU is in, else 0")
        self._states = {
            state: status.series(status.name, attributes={"nvidia.gpu.state": state}) for state in STATES
        }
        reason = make.updown(
            "nvidia.gpu.clock.status", "1", "One for each reason that sets the clocks, else 0"
        )
        self._reasons = {
            bit: reason.series(reason.name, attributes={"nvidia.gpu.clock.event_reason": name})
            for name, bit in REASONS.items()
        }

    def points(self, gpu: Gpu) -> Iterator[Point]:
        """Every point that a GPU has now."""
        for state, series in self._states.items():
            if gpu.parent is None:
                yield series, int(gpu.state == state)
        figures = gpu.figures
        for name, value in figures.items():
            if name in self._of:
                yield self._of[name], value * _FACTORS.get(name, 1)
        yield from self._derived(figures)

    def _derived(self, figures: Mapping[str, int]) -> Iterator[Point]:
        total, used = figures.get("memory_total"), figures.get("memory_used")
        if total and used is not None:
            yield self._share, used / total
        milliwatts: Number | None = figures.get("power_average", figures.get("power_instant"))
        if milliwatts is not None:
            yield self._power, milliwatts / 1000
        if (reasons := figures.get("clock_reasons")) is not None:
            for bit, series in self._reasons.items():
                yield series, int(bool(reasons & bit))


def _figures(make: Instruments) -> Iterator[tuple[str, Series]]:
    busy = make.gauge("hw.gpu.utilization", "1", "Share of time in which the engine was busy", "double")
    for task, attribute in (("gpu", "general"), ("encoder", "encoder"), ("decoder", "decoder")):
        name = f"utilization_{task}"
        yield name, busy.series(name, 100, {"hw.gpu.task": attribute})
    bus = make.gauge(
        "nvidia.gpu.memory.io.utilization", "1", "Share of time in which memory was read or written", "double"
    )
    yield "utilization_memory", bus.series("utilization_memory", 100)
    for name, metric, description in (
        ("memory_used", "hw.gpu.memory.usage", "Memory in use, without what the driver keeps for itself"),
        ("memory_total", "hw.gpu.memory.limit", "All memory of the GPU"),
        ("memory_free", "nvidia.gpu.memory.free", "Memory that nobody uses"),
        ("memory_reserved", "nvidia.gpu.memory.reserved", "Memory that the driver keeps for itself"),
    ):
        yield name, make.updown(metric, "By", description).series(f"{name}_bytes")
    yield "energy", hardware.energy(make).series("energy_mj", 1000, _GPU)
    limit = make.gauge("nvidia.gpu.power.limit", "W", "Power that the GPU may take", "double")
    yield "power_limit", limit.series("power_limit_mw", 1000)
    yield from _temperatures(make)
    clock = make.gauge("nvidia.gpu.clock.frequency", "Hz", "Clock of a part of the GPU")
    for name in CLOCKS:
        yield f"clock.{name}", clock.series(f"clocks_{name}_hz", 1, {"nvidia.gpu.clock.type": name})
    held = make.counter(
        "nvidia.gpu.clock.throttled.time", "s", "Time in which clocks were held down", "double"
    )
    for reason in REASONS:
        source = f"clocks_event_reasons_counters_{reason}_ns"
        yield f"throttled.{reason}", held.series(source, _NS, {"nvidia.gpu.clock.event_reason": reason})
    yield from _errors(make)
    yield from _traffic(make)
    action = make.gauge("nvidia.gpu.recovery.action", "1", "What the driver wants done, 0 for nothing")
    yield "recovery_action", action.series("recovery_action")


def _temperatures(make: Instruments) -> Iterator[tuple[str, Series]]:
    heat = make.gauge("hw.temperature", "Cel", "Temperature of the component", "double")
    for place in ("gpu", "memory"):
        name = f"temperature_{place}"
        yield name, heat.series(name, attributes={**_GPU, "hw.sensor_location": place})
    most = make.gauge("hw.temperature.limit", "Cel", "Temperature at which something is done", "double")
    limits = {"shutdown": "critical", "slowdown": "throttled", "gpu_max": "max"}
    for name, kind in limits.items():
        attributes = {**_GPU, "hw.sensor_location": "gpu", "hw.limit_type": kind}
        yield f"threshold.{name}", most.series(f"temperature_{name}_threshold", attributes=attributes)


def _errors(make: Instruments) -> Iterator[tuple[str, Series]]:
    errors = make.counter("hw.errors", "{error}", "Errors of the component")
    for kind in ("corrected", "uncorrected"):
        series = errors.series(f"ecc_errors_volatile_{kind}", attributes={**_GPU, "error.type": kind})
        yield f"ecc.{kind}", series
    rows = make.updown("nvidia.gpu.memory.remapped_row.count", "{row}", "Rows of memory that were replaced")
    for cause in ("corrected", "uncorrected"):
        attributes = {"nvidia.gpu.memory.remap_cause": cause}
        yield f"remapped.{cause}", rows.series(f"remapped_rows_{cause}", attributes=attributes)
    status = make.updown("hw.status", "1", "One for each state that the component is in, else 0")
    for name, state in (("pending", "predicted_failure"), ("failure", "failed")):
        attributes = {**_GPU, "hw.state": state}
        yield f"remapped.{name}", status.series(f"remapped_rows_{name}", attributes=attributes)


def _traffic(make: Instruments) -> Iterator[tuple[str, Series]]:
    io = make.counter("hw.gpu.io", "By", "Bytes that went over PCIe")
    links = make.counter("nvidia.gpu.nvlink.io", "By", "Bytes that went over all NVLinks")
    for short, direction in (("rx", "receive"), ("tx", "transmit")):
        attributes = {"network.io.direction": direction}
        yield f"pcie_{short}", io.series(f"pcie_{short}_bytes", attributes=attributes)
        yield f"nvlink_{short}", links.series(f"nvlink_{short}_bytes", attributes=attributes)
