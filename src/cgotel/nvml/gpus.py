"""A GPU's figures as plain data, and how they are read: one call for what one call can give."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from cgotel.nvml.driver import Driver, Handle

State: TypeAlias = Literal["ok", "lost", "reset_required", "suspended"]

NO_INSTANCE = 0xFFFFFFFF

CLOCKS = ("graphics", "sm", "memory", "video")
THRESHOLDS = {"shutdown": 0, "slowdown": 1, "gpu_max": 3}
REASONS = {
    "gpu_idle": 0x1,
    "applications_clocks_setting": 0x2,
    "sw_power_cap": 0x4,
    "hw_slowdown": 0x8,
    "sync_boost": 0x10,
    "sw_thermal_slowdown": 0x20,
    "hw_thermal_slowdown": 0x40,
    "hw_power_brake_slowdown": 0x80,
    "display_clock_setting": 0x100,
}
"""nvml.h, nvmlClocksEventReasons."""

_ALL_LINKS = 0xFFFFFFFF
FIELDS: Mapping[str, int | tuple[int, int]] = {
    "energy": 83,
    "power_average": 185,
    "power_instant": 186,
    "power_limit": 190,
    "temperature_memory": 82,
    "throttled.sw_power_cap": 74,
    "throttled.sync_boost": 76,
    "throttled.sw_thermal_slowdown": 269,
    "throttled.hw_thermal_slowdown": 270,
    "throttled.hw_power_brake_slowdown": 271,
    "remapped.corrected": 142,
    "remapped.uncorrected": 143,
    "remapped.pending": 144,
    "remapped.failure": 145,
    "pcie_tx": 197,
    "pcie_rx": 198,
    "nvlink_tx": (138, _ALL_LINKS),
    "nvlink_rx": (139, _ALL_LINKS),
    "recovery_action": 230,
}
"""nvml.h, NVML_FI_DEV_*: all of them in one call."""

_UNSIGNED = {1: "uiVal", 2: "ulVal", 3: "ullVal", 6: "usVal"}
_SIGNED = {4: "sllVal", 5: "siVal"}
_NOT_AVAILABLE = (0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF)


@dataclass(frozen=True, slots=True)
class Process:
    """A process that holds memory of a GPU, in bytes; None where the driver does not tell how much."""

    pid: int
    memory: int | None
    instance: int | None = None


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU, or one MIG instance of the GPU ``parent``, at one instant.

    ``figures`` are the driver's own numbers under the names above; what it did not give is not there.
    ``processes`` is None where they cannot be listed.
    """

    uuid: str
    name: str
    address: str
    state: State = "ok"
    parent: str | None = None
    instance: int | None = None
    figures: Mapping[str, int] = field(default_factory=dict)
    processes: tuple[Process, ...] | None = None


def identify(driver: Driver, handle: Handle) -> Gpu | None:
    """Who a GPU is; None where it does not say."""
    uuid = driver.ask("", "nvmlDeviceGetUUID", handle)
    if not uuid:
        return None
    pci = driver.ask(uuid, "nvmlDeviceGetPciInfo", handle)
    name = driver.ask(uuid, "nvmlDeviceGetName", handle) or ""
    return Gpu(str(uuid), str(name), _text(pci.busId) if pci is not None else "")


def read(driver: Driver, handle: Handle, who: Gpu) -> Iterator[Gpu]:
    """A GPU's figures, and then those of its MIG instances. Raises `GpuLost` and `DriverLost`."""
    driver.reset_required.discard(who.uuid)
    instances = list(_instances(driver, handle, who))
    figures = dict(_figures(driver, handle, who.uuid))
    processes = _processes(driver, handle, who.uuid, figures.get("memory_total"))
    state: State = "reset_required" if who.uuid in driver.reset_required else "ok"
    yield Gpu(who.uuid, who.name, who.address, state, None, None, figures, processes)
    for instance_handle, instance in instances:
        memory = dict(_memory(driver, instance_handle, instance.uuid))
        own: tuple[Process, ...] | None
        if processes is None:
            own = _processes(driver, instance_handle, instance.uuid, memory.get("memory_total"))
        else:
            own = tuple(p for p in processes if p.instance == instance.instance)
        yield Gpu(instance.uuid, instance.name, who.address, state, who.uuid, instance.instance, memory, own)


def memory_and_processes(driver: Driver, handle: Handle, who: Gpu) -> Gpu:
    """Of a whole GPU only what tells how full it is, and of whom. Raises `GpuLost` and `DriverLost`."""
    figures = dict(_memory(driver, handle, who.uuid))
    processes = _processes(driver, handle, who.uuid, figures.get("memory_total"))
    return replace(who, figures=figures, processes=processes)


def _instances(driver: Driver, handle: Handle, who: Gpu) -> Iterator[tuple[Handle, Gpu]]:
    """MIG instances, one for each GPU instance: those that share one share its memory."""
    mode = driver.ask(who.uuid, "nvmlDeviceGetMigMode", handle)
    if not mode or mode[0] != 1:
        return
    seen: set[int] = set()
    for index in range(driver.ask(who.uuid, "nvmlDeviceGetMaxMigDeviceCount", handle) or 0):
        found = driver.ask(who.uuid, "nvmlDeviceGetMigDeviceHandleByIndex", handle, index)
        if found is None:
            continue  # a hole
        uuid = driver.ask("", "nvmlDeviceGetUUID", found)
        instance = driver.ask(str(uuid), "nvmlDeviceGetGpuInstanceId", found)
        if not uuid or instance is None or instance in seen:
            continue
        seen.add(instance)
        name = str(driver.ask(str(uuid), "nvmlDeviceGetName", found) or "")
        yield found, Gpu(str(uuid), name, who.address, parent=who.uuid, instance=int(instance))


def _figures(driver: Driver, handle: Handle, gpu: str) -> Iterator[tuple[str, int]]:
    yield from _memory(driver, handle, gpu)
    utilization = driver.ask(gpu, "nvmlDeviceGetUtilizationRates", handle)
    if utilization is not None:
        yield "utilization_gpu", utilization.gpu
        yield "utilization_memory", utilization.memory
    for name, function in (
        ("utilization_encoder", "nvmlDeviceGetEncoderUtilization"),
        ("utilization_decoder", "nvmlDeviceGetDecoderUtilization"),
    ):
        if (sampled := driver.ask(gpu, function, handle)) is not None:
            yield name, sampled[0]
    fields = dict(_fields(driver, handle, gpu))
    yield from fields.items()
    yield from _instead(driver, handle, gpu, fields)
    for kind, name in enumerate(CLOCKS):
        yield from _one(f"clock.{name}", driver.ask(gpu, "nvmlDeviceGetClockInfo", handle, kind))
    for name, number in THRESHOLDS.items():
        answer = driver.ask(gpu, "nvmlDeviceGetTemperatureThreshold", handle, number)
        yield from _one(f"threshold.{name}", answer)
    for kind, name in enumerate(("corrected", "uncorrected")):
        answer = driver.ask(gpu, "nvmlDeviceGetTotalEccErrors", handle, kind, 0)
        yield from _one(f"ecc.{name}", answer)


def _instead(
    driver: Driver, handle: Handle, gpu: str, fields: Mapping[str, int]
) -> Iterator[tuple[str, int]]:
    """What older drivers give by functions of its own, and what has two names."""
    for name, function in (
        ("energy", "nvmlDeviceGetTotalEnergyConsumption"),
        ("power_limit", "nvmlDeviceGetEnforcedPowerLimit"),
    ):
        if name not in fields:
            yield from _one(name, driver.ask(gpu, function, handle))
    if "power_average" not in fields and "power_instant" not in fields:
        yield from _one("power_instant", driver.ask(gpu, "nvmlDeviceGetPowerUsage", handle))
    temperature = driver.ask(gpu, "nvmlDeviceGetTemperatureV", handle, 0)
    if temperature is None:
        temperature = driver.ask(gpu, "nvmlDeviceGetTemperature", handle, 0)
    yield from _one("temperature_gpu", temperature)
    reasons = driver.ask(gpu, "nvmlDeviceGetCurrentClocksEventReasons", handle)
    if reasons is None:
        reasons = driver.ask(gpu, "nvmlDeviceGetCurrentClocksThrottleReasons", handle)
    yield from _one("clock_reasons", reasons)


def _memory(driver: Driver, handle: Handle, gpu: str) -> Iterator[tuple[str, int]]:
    """Version 2 tells what the driver keeps for itself from what is used; 0 in all is no answer."""
    memory = driver.ask(gpu, "nvmlDeviceGetMemoryInfo", handle, 0x02000028)
    if memory is None:
        memory = driver.ask(gpu, "nvmlDeviceGetMemoryInfo", handle)
    if memory is None or not memory.total:
        return
    yield "memory_total", memory.total
    yield "memory_used", memory.used
    yield "memory_free", memory.free
    reserved = getattr(memory, "reserved", None)
    if reserved is not None:
        yield "memory_reserved", reserved


def _fields(driver: Driver, handle: Handle, gpu: str) -> Iterator[tuple[str, int]]:
    values = driver.ask(gpu, "nvmlDeviceGetFieldValues", handle, tuple(FIELDS.values()))
    for name, value in zip(FIELDS, values or (), strict=False):
        if value.nvmlReturn:
            continue
        kind = value.valueType
        member = _UNSIGNED.get(kind) or _SIGNED.get(kind)
        number = getattr(value.value, member) if member else None
        if number is not None and number >= 0 and number not in _NOT_AVAILABLE:
            yield name, int(number)


def _processes(driver: Driver, handle: Handle, gpu: str, total: int | None) -> tuple[Process, ...] | None:
    """Each process once, whatever lists it stands in; None where none can be had."""
    if not driver.lists_processes_truly:
        return None
    found: dict[int, Process] = {}
    listed = False
    for kind in ("Compute", "Graphics", "MPSCompute"):
        answer = _list(driver, handle, gpu, kind)
        listed = listed or (answer is not None and kind != "MPSCompute")
        for one in answer or ():
            process = _process(one, total)
            known = found.get(process.pid)
            if known is None or (process.memory or 0) > (known.memory or 0):
                found[process.pid] = process
    return tuple(found.values()) if listed else None


def _list(driver: Driver, handle: Handle, gpu: str, kind: str) -> list[Any] | None:
    for version in ("_v3", "_v3", "_v2"):  # once more, where processes came between its two calls
        answer = driver.ask(gpu, f"nvmlDeviceGet{kind}RunningProcesses{version}", handle)
        if answer is not None:
            return list(answer)
    return None


def _process(one: Any, total: int | None) -> Process:
    memory = one.usedGpuMemory
    if memory is not None and total is not None and memory > total:
        memory = None
    instance = one.gpuInstanceId
    return Process(int(one.pid), memory, None if instance == NO_INSTANCE else int(instance))


def _one(name: str, value: int | None) -> Iterator[tuple[str, int]]:
    if value is not None:
        yield name, int(value)


def _text(value: bytes | str | ctypes.Array[ctypes.c_char]) -> str:
    return value.decode("ascii", "replace") if isinstance(value, bytes) else str(value)
