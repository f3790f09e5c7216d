"""``nvml``: what NVIDIA's driver reports of its GPUs: Xids, GPUs that are lost, memory that fills up.

Xids come from the driver's own queue of events, within milliseconds. They name no process: the kernel
log's line of the same Xid does, and goes before it where that is read. Memory is looked at now and
then, and told where it has changed, so that a death soon after finds how full a GPU was, and of whom.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Annotated, Any, Literal

import msgspec

from cgotel.contract import (
    Bookmark,
    Report,
    Roots,
    SourceStatus,
    State,
    Stop,
    Timeline,
    Unavailable,
    Watcher,
    WatcherSettings,
)
from cgotel.evidence import GpuMemory, GpuState, GpuXid
from cgotel.hookspecs import hookimpl
from cgotel.kernel import tasks
from cgotel.nvml import presence
from cgotel.nvml.driver import NOT_SUPPORTED, TIMEOUT, Driver, DriverLost, GpuLost, Handle, Refused
from cgotel.nvml.gpus import Gpu, Process, identify, memory_and_processes
from cgotel.nvml.presence import short_address
from cgotel.watchers.attendance import Attendance

NAME = "nvml"

_XID, _DOUBLE_BIT = 8, 2  # nvml.h, nvmlEventType*
_WAIT_MS = 500
_UNCERTAIN_NS = 100_000_000  # events carry no stamp
_NEWS = 0.01  # of all memory
_REPEAT_NS = 20 * 10**9  # rules look back a minute
_FULL = 0.9
_SEARCH_NS = 10 * 10**9  # between looks for a GPU that was lost

_Amounts = tuple[int, int | None, int | None]


class NvmlWatcherConfig(WatcherSettings, frozen=True):
    """``[watchers.nvml]``."""

    interval: Annotated[float, msgspec.Meta(ge=0.1, le=30)] = 2.0
    """Seconds between looks at the memory of GPUs."""
    library: str = ""
    """Path of libnvidia-ml.so.1 where the loader does not find it."""
    release_file: str = "/run/cgotel/release-gpus"
    """While this file is there, the GPUs are let go of."""


class NvmlWatcher(Watcher):
    """Reports what the driver of NVIDIA's GPUs says."""

    name = NAME
    Config = NvmlWatcherConfig
    needs = ("NVIDIA's driver with libnvidia-ml.so.1 and /dev/nvidia*",)

    config: NvmlWatcherConfig

    def __init__(self, config: Any, roots: Roots, timeline: Timeline, bookmark: Bookmark) -> None:
        super().__init__(config, roots, timeline, bookmark)
        self._attendance = Attendance(NAME, timeline, bookmark)
        self._driver: Driver | None = None
        self._gpus: dict[str, tuple[Handle, Gpu]] = {}
        self._events: Any = None
        self._lost: set[str] = set()
        self._told: dict[tuple[str, str | None], tuple[int, _Amounts]] = {}

    def start(self) -> None:
        if presence.driver_version(self.roots.proc) is None:
            raise _unavailable(State.ABSENT, "no NVIDIA driver is loaded")
        if self._released():
            raise _unavailable(State.OFF, "let go of on request", "remove the release file")
        if any(card.may_sleep for card in presence.cards(self.roots.sys)):
            raise _unavailable(State.OFF, "a GPU here may sleep, and would be kept awake")
        try:
            self._driver = Driver(self.config.library)
            self._find(self._driver)
            if not self._gpus:
                raise _unavailable(State.FAILED, "the driver shows no GPU")
        except Refused as refused:
            self.close()
            raise _unavailable(State.FAILED, str(refused)) from refused

    def watch(self, report: Report, stop: Stop) -> None:
        assert self._driver is not None, "watch() before start()"
        report(self._attendance.absence(self.timeline.now()))
        due_ns = search_ns = 0
        while not stop.is_set():
            if self._released():
                self._attendance.note(last=True)
                raise _unavailable(State.OFF, "let go of on request", "remove the release file")
            self._attendance.note()
            try:
                for piece in self._heard(self._driver, stop):
                    report(piece)
                if self.timeline.now() >= due_ns:
                    due_ns = self.timeline.now() + int(self.config.interval * 1e9)
                    if self._lost and self.timeline.now() >= search_ns:
                        search_ns = self.timeline.now() + _SEARCH_NS
                        self._find(self._driver)
                    for found in self._seen(self._driver):
                        report(found)
            except DriverLost as lost:
                self._attendance.note(last=True)
                raise _unavailable(State.FAILED, str(lost)) from lost
            if not self._gpus:
                raise _unavailable(State.FAILED, "every GPU is lost")
        self._attendance.note(last=True)

    def close(self) -> None:
        driver, self._driver = self._driver, None
        if driver is not None:
            if self._events is not None:
                with contextlib.suppress(Refused):
                    driver.call("nvmlEventSetFree", self._events)
            driver.close()
        self._events = None
        self._gpus.clear()

    def _released(self) -> bool:
        return presence.is_released(self.config.release_file)

    def _find(self, driver: Driver) -> None:
        """Take a handle of each GPU that answers and has none yet, and ask for its events."""
        for index in range(driver.call("nvmlDeviceGetCount")):
            try:
                handle = driver.call("nvmlDeviceGetHandleByIndex", index)
                who = identify(driver, handle)
            except DriverLost:
                raise
            except Refused as refused:
                driver.errors[refused.function, refused.meaning] += 1
                continue
            if who is not None and who.uuid not in self._gpus:
                self._gpus[who.uuid] = (handle, who)
                self._lost.discard(who.uuid)
                self._register(driver, handle, who.uuid)

    def _register(self, driver: Driver, handle: Handle, gpu: str) -> None:
        """Ask for a GPU's events, if it has any: they come in one set for all."""
        try:
            kinds = (driver.ask(gpu, "nvmlDeviceGetSupportedEventTypes", handle) or 0) & (_XID | _DOUBLE_BIT)
            if kinds:
                if self._events is None:
                    self._events = driver.call("nvmlEventSetCreate")
                driver.call("nvmlDeviceRegisterEvents", handle, kinds, self._events)
        except DriverLost:
            raise
        except Refused as refused:
            driver.errors[refused.function, refused.meaning] += 1

    def _heard(self, driver: Driver, stop: Stop) -> Iterator[GpuXid | GpuState]:
        """Wait for events, and tell all that are there."""
        if self._events is None:
            stop.wait(_WAIT_MS / 1000)
            return
        wait_ms = _WAIT_MS
        while not stop.is_set():
            try:
                event = driver.call("nvmlEventSetWait_v2", self._events, wait_ms)
            except DriverLost:
                raise
            except Refused as refused:
                if refused.code not in (TIMEOUT, NOT_SUPPORTED):
                    stop.wait(_WAIT_MS / 1000)  # a GPU of the set may be lost: the next look says which
                return
            wait_ms = 0
            who = identify(driver, event.device)
            device = _device(who) if who is not None else ""
            now = self.timeline.now()
            if event.eventType == _XID:
                yield GpuXid(
                    source=NAME, time_ns=now, uncertainty_ns=_UNCERTAIN_NS,
                    xid=int(event.eventData), device=device,
                )  # fmt: skip
            elif event.eventType == _DOUBLE_BIT:
                yield self._state(device, "ecc", "uncorrectable memory error")

    def _seen(self, driver: Driver) -> Iterator[GpuMemory | GpuState]:
        """What a look at every GPU shows that was not told before."""
        for uuid, (handle, who) in list(self._gpus.items()):
            reset_before = uuid in driver.reset_required
            driver.reset_required.discard(uuid)
            try:
                gpu = memory_and_processes(driver, handle, who)
            except GpuLost:
                del self._gpus[uuid]
                if uuid not in self._lost:
                    self._lost.add(uuid)
                    yield self._state(_device(who), "lost")
                continue
            if uuid in driver.reset_required and not reset_before:
                yield self._state(_device(who), "reset_required")
            yield from self._memory(gpu)

    def _memory(self, gpu: Gpu) -> Iterator[GpuMemory]:
        """One piece for each cgroup that holds memory, one without where nobody is known to."""
        total, used = gpu.figures.get("memory_total"), gpu.figures.get("memory_used")
        if not total or used is None:
            return
        owned: dict[str | None, list[Process]] = {}
        for process in gpu.processes or ():
            owned.setdefault(tasks.cgroup(self.roots.proc, process.pid), []).append(process)
        for cgroup, processes in owned.items() or [(None, [])]:
            others = [p.memory for other, ps in owned.items() if other != cgroup for p in ps if p.memory]
            amounts = (used, _sum(processes), max(others, default=None))
            if self._is_news(gpu.uuid, cgroup, amounts, total):
                yield GpuMemory(
                    source=NAME, time_ns=self.timeline.now(), cgroup=cgroup, device=_device(gpu),
                    total=total, used=used, own=amounts[1] if cgroup else None,
                    largest_other=amounts[2] if cgroup else None,
                )  # fmt: skip

    def _is_news(self, gpu: str, cgroup: str | None, amounts: _Amounts, total: int) -> bool:
        now = self.timeline.now()
        told_ns, before = self._told.get((gpu, cgroup), (0, amounts))
        pairs = zip(amounts, before, strict=True)
        changed = any(abs((one or 0) - (other or 0)) > _NEWS * total for one, other in pairs)
        crossed = (amounts[0] >= _FULL * total) is not (before[0] >= _FULL * total)
        if not changed and not crossed and now - told_ns < _REPEAT_NS:
            return False
        self._told = {key: told for key, told in self._told.items() if now - told[0] < 10 * _REPEAT_NS}
        self._told[gpu, cgroup] = (now, amounts)
        return True

    def _state(
        self, device: str, state: Literal["lost", "reset_required", "ecc"], text: str = ""
    ) -> GpuState:
        return GpuState(source=NAME, time_ns=self.timeline.now(), device=device, state=state, text=text)


def _sum(processes: list[Process]) -> int | None:
    amounts = [process.memory for process in processes if process.memory is not None]
    return sum(amounts) if amounts else None


def _device(gpu: Gpu) -> str:
    """As the kernel log calls it: ``0000:65:00``."""
    return short_address(gpu.address).partition(".")[0]


def _unavailable(state: State, reason: str, remedy: str = "") -> Unavailable:
    return Unavailable(SourceStatus(NAME, state, reason, remedy))


@hookimpl
def cgotel_watchers() -> list[type[NvmlWatcher]]:
    return [NvmlWatcher]
