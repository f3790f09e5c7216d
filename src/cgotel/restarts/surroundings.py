"""What surrounded an exit: amounts of memory and pressure from the sweeps, kept for a few minutes."""

from __future__ import annotations

from collections import OrderedDict, deque

from cgotel.evidence import HostMemory, MemoryUse
from cgotel.model import Number, Reading, Sweep
from cgotel.restarts.shelf import lineage

SECOND = 1_000_000_000
_KEEP_NS = 300 * SECOND
_KEEP_ENDED_NS = 600 * SECOND
_MOST = 64
_LIMITS = ("memory.max", "memory.high")
_SOURCE = "sweep"


class Surroundings:
    """A short ring a cgroup, and one for the host; ``drift_ns`` leads from wall time to the timeline."""

    def __init__(self) -> None:
        self._cgroups: OrderedDict[str, deque[MemoryUse]] = OrderedDict()
        self._host: deque[HostMemory] = deque(maxlen=_MOST)
        self._stalls: dict[str, tuple[int, Number]] = {}

    def see(self, sweep: Sweep, drift_ns: int = 0) -> None:
        """Take what a sweep says of memory."""
        now_ns = sweep.time_ns - drift_ns
        for reading in sweep.readings:
            if reading.entity.kind == "host":
                self._host.append(_host(reading, now_ns))
            elif path := _path(reading):
                self._see(path, reading, now_ns)
        while self._cgroups:
            path, ring = next(iter(self._cgroups.items()))
            if ring[-1].time_ns >= now_ns - _KEEP_ENDED_NS:
                break
            del self._cgroups[path]
            self._stalls.pop(path, None)

    def around(self, cgroup: str | None, time_ns: int) -> list[MemoryUse | HostMemory]:
        """The amounts of a cgroup, its ancestors and the host, in the minutes before a moment."""
        found: list[MemoryUse | HostMemory] = [e for e in self._host if _before(e.time_ns, time_ns)]
        for path in lineage(cgroup) if cgroup else ():
            found += [e for e in self._cgroups.get(path, ()) if _before(e.time_ns, time_ns)]
        return found

    def _see(self, path: str, reading: Reading, now_ns: int) -> None:
        current = reading.value("memory.current")
        if current is None:
            return
        limits = {name: int(limit) for name in _LIMITS if (limit := reading.value(name)) is not None}
        effective, owner = _effective(reading, path)
        use = MemoryUse(
            source=_SOURCE,
            time_ns=now_ns,
            cgroup=path,
            current=int(current),
            peak=_whole(reading.value("memory.peak")),
            limits=limits,
            effective_limit=effective,
            limit_cgroup=owner,
            full_avg10=self._stalled(path, reading.value("memory.pressure.full.total"), now_ns),
        )
        ring = self._cgroups.setdefault(path, deque(maxlen=_MOST))
        ring.append(use)
        while ring[0].time_ns < now_ns - _KEEP_NS:
            ring.popleft()
        self._cgroups.move_to_end(path)

    def _stalled(self, path: str, total_us: Number | None, now_ns: int) -> float | None:
        """The share of time since the last sweep in which all tasks waited; None at first."""
        if total_us is None:
            return None
        before = self._stalls.get(path)
        self._stalls[path] = (now_ns, total_us)
        if before is None or now_ns <= before[0] or total_us < before[1]:
            return None
        return min(1.0, (total_us - before[1]) * 1000 / (now_ns - before[0]))


def _before(piece_ns: int, time_ns: int) -> bool:
    return time_ns - _KEEP_NS <= piece_ns <= time_ns + 15 * SECOND


def _path(reading: Reading) -> str:
    return str(reading.entity.attributes.get("process.linux.cgroup", "")).removeprefix("0::")


def _effective(reading: Reading, path: str) -> tuple[int | None, str | None]:
    for series, value in reading.points:
        if series.source == "memory.effective_limit":
            owner = str(dict(series.attributes).get("cgroup.limit.owner", ""))
            return int(value), path if owner == "self" else owner or None
    return None, None


def _host(reading: Reading, now_ns: int) -> HostMemory:
    return HostMemory(
        source=_SOURCE,
        time_ns=now_ns,
        total=_whole(reading.value("meminfo.MemTotal")),
        available=_whole(reading.value("meminfo.MemAvailable")),
        swap_total=_whole(reading.value("meminfo.SwapTotal")),
        swap_free=_whole(reading.value("meminfo.SwapFree")),
    )


def _whole(value: Number | None) -> int | None:
    return None if value is None else int(value)
