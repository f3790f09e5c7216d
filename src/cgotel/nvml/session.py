"""The GPUs of this machine over the life of a driver: opened, read, lost, let go of, opened again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from cgotel.contract import SourceStatus
from cgotel.kernel.source import State
from cgotel.nvml import presence
from cgotel.nvml.driver import (
    MISMATCH,
    NO_LIBRARY,
    NOT_LOADED,
    UNKNOWN,
    Driver,
    DriverLost,
    GpuLost,
    Handle,
    Refused,
)
from cgotel.nvml.gpus import Gpu, identify, read
from cgotel.nvml.presence import short_address

_RETRY_S = (1, 2, 4, 8, 16, 30)
_FRUITLESS = 3

ABSENT = SourceStatus("nvml", State.ABSENT, "no NVIDIA driver is loaded", "")
RELEASED = SourceStatus("nvml", State.OFF, "let go of on request", "remove the release file")
ASLEEP = SourceStatus("nvml", State.OFF, "every GPU is asleep, and is not woken", "")
NO_GPUS = SourceStatus("nvml", State.FAILED, "the driver shows no GPU", "see what nvidia-smi -L says")

_REMEDIES = {
    MISMATCH: "the driver was upgraded: reload its modules or reboot, then restart the agent",
    NO_LIBRARY: "install libnvidia-ml.so.1 of the driver's version, or set library",
    NOT_LOADED: "modprobe nvidia",
    UNKNOWN: "in a container: start it anew, its devices were taken away (systemctl daemon-reload does)",
}


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All GPUs at one instant, the state of the driver, and the calls that failed so far."""

    gpus: tuple[Gpu, ...]
    status: SourceStatus
    errors: Mapping[tuple[str, str], int] = field(default_factory=dict)
    denied: frozenset[str] = frozenset()


class Session:
    """Used by one thread alone. ``look`` never raises: what cannot be had is told by its status."""

    def __init__(self, proc: str, sys: str, library: str, release_file: str) -> None:
        self._proc = proc
        self._sys = sys
        self._library = library
        self._release_file = release_file
        self._driver: Driver | None = None
        self._handles: dict[str, tuple[Handle, Gpu]] = {}
        self._known: dict[str, Gpu] = {}
        self._asleep: set[str] = set()
        self._errors: Counter[tuple[str, str]] = Counter()
        self._failures = 0
        self._fruitless = 0
        self._retry_ns = 0
        self._status = ABSENT

    @property
    def released(self) -> bool:
        """Whether somebody asks for the GPUs."""
        return presence.is_released(self._release_file)

    def rest(self) -> None:
        """Between two looks: let go of the GPUs as soon as that is asked for."""
        if self._driver is not None and self.released:
            self.close()

    def look(self, monotonic_ns: int) -> Snapshot:
        """What every GPU says now."""
        if presence.driver_version(self._proc) is None:
            self.close()
            self._retry_ns = 0
            return self._told((), ABSENT)
        if self.released:
            self.close()
            return self._told((), RELEASED)
        cards = presence.cards(self._sys)
        asleep = {card.address for card in cards if card.asleep}
        if asleep and len(asleep) == len(cards):
            self.close()  # an open handle alone would keep the next one awake
            return self._told(self._sleeping(asleep), ASLEEP)
        if asleep != self._asleep:
            self.close()
            self._asleep = asleep
        if self._driver is None and monotonic_ns < self._retry_ns:
            return self._told((), self._status)
        try:
            gpus = self._read(asleep)
        except Refused as refused:
            return self._told((), self._failed(refused, monotonic_ns))
        told = self._told(gpus, self._judged(gpus, monotonic_ns))
        if any(card.may_sleep for card in cards):
            self.close()  # a handle that is kept would keep it awake
        return told

    def close(self) -> None:
        """Let go of everything."""
        driver, self._driver = self._driver, None
        self._handles.clear()
        if driver is not None:
            self._errors += driver.errors
            driver.close()

    def _read(self, asleep: set[str]) -> tuple[Gpu, ...]:
        if self._driver is None:
            self._driver = Driver(self._library)
            self._find(self._driver, asleep)
        found: list[Gpu] = []
        for uuid, (handle, who) in list(self._handles.items()):
            if short_address(who.address) in asleep:
                found.append(replace(who, state="suspended"))
                continue
            try:
                found += read(self._driver, handle, who)
            except GpuLost:
                found.append(replace(who, state="lost"))
                self._handles.pop(uuid)
        missing = self._known.keys() - {gpu.uuid for gpu in found}
        found += [replace(self._known[uuid], state="lost") for uuid in sorted(missing)]
        return tuple(found)

    def _find(self, driver: Driver, asleep: set[str]) -> None:
        """Take a handle of each GPU, but of none that sleeps: that would wake it."""
        if asleep:
            addresses = [card.address for card in presence.cards(self._sys) if not card.asleep]
            calls: list[tuple[str, object]] = [
                ("nvmlDeviceGetHandleByPciBusId", address.encode()) for address in addresses
            ]
        else:
            count = driver.call("nvmlDeviceGetCount")
            calls = [("nvmlDeviceGetHandleByIndex", index) for index in range(count)]
        for function, argument in calls:
            try:
                handle = driver.call(function, argument)
                who = identify(driver, handle)
            except DriverLost:
                raise
            except Refused as refused:
                driver.errors[refused.function, refused.meaning] += 1
                continue
            if who is not None:
                self._handles[who.uuid] = (handle, who)
                self._known[who.uuid] = who

    def _judged(self, gpus: tuple[Gpu, ...], monotonic_ns: int) -> SourceStatus:
        """The state of the driver after a look that went through; what is lost is looked for again."""
        useful = any(gpu.figures for gpu in gpus)
        self._fruitless = 0 if useful else self._fruitless + 1
        lost = any(gpu.state == "lost" for gpu in gpus)
        if lost or not gpus or self._fruitless >= _FRUITLESS:
            self.close()
            self._wait(monotonic_ns)
        else:
            self._failures = 0
        self._status = NO_GPUS if not gpus else SourceStatus("nvml", State.OK)
        return self._status

    def _failed(self, refused: Refused, monotonic_ns: int) -> SourceStatus:
        self._errors[refused.function, refused.meaning] += 1
        self.close()
        self._wait(monotonic_ns)
        self._status = SourceStatus("nvml", State.FAILED, str(refused), _REMEDIES.get(refused.code, ""))
        return self._status

    def _wait(self, monotonic_ns: int) -> None:
        self._retry_ns = monotonic_ns + _RETRY_S[min(self._failures, len(_RETRY_S) - 1)] * 10**9
        self._failures += 1

    def _sleeping(self, asleep: set[str]) -> tuple[Gpu, ...]:
        known = self._known.values()
        return tuple(replace(gpu, state="suspended") for gpu in known if short_address(gpu.address) in asleep)

    def _told(self, gpus: tuple[Gpu, ...], status: SourceStatus) -> Snapshot:
        errors = self._errors + (self._driver.errors if self._driver else Counter())
        denied = frozenset(self._driver.denied) if self._driver else frozenset()
        return Snapshot(gpus, status, errors, denied)
