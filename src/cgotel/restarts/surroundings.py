"""What surrounded an exit: memory and pressure of cgroups and of the host, kept from sweeps for a while.

A sweep brings a few hundred numbers of each cgroup, of which some are kept as they are; evidence is
made of them only where somebody asks. Which places of a reading they stand at is found once for
all readings with the same series.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from cgotel.evidence import HostMemory, MemoryUse
from cgotel.model import Number, Reading, Series, Sweep
from cgotel.restarts.shelf import lineage

_SECOND = 1_000_000_000
_KEEP_NS = 300 * _SECOND
_KEEP_ENDED_NS = 600 * _SECOND
_AFTER_NS = 15 * _SECOND
_DENSE_NS = 60 * _SECOND  # so long all that is spaced well is kept, before that one a minute
_SPACING_NS = 5 * _SECOND
_MOST_CGROUPS = 20_000
_MOST_LAYOUTS = 1024
_SOURCE = "sweep"

_LIMITS = ("memory.max", "memory.high", "memory.swap.max")
_EFFECTIVE = "memory.effective_limit"
_SWAP = "swaps."


class Surroundings:
    """A short ring for each cgroup and one for the host."""

    def __init__(self) -> None:
        self._cgroups: OrderedDict[str, _Cgroup] = OrderedDict()
        self._host: list[_Host] = []
        self._host_stalls = _Stalls()
        self._layouts: dict[int, _Layout] = {}

    def see(self, sweep: Sweep, drift_ns: int = 0) -> None:
        """Take what a sweep says of memory; ``drift_ns`` leads from its time to that of other evidence."""
        now_ns = sweep.time_ns - drift_ns
        host: dict[str, Number] = {}
        for reading in sweep.readings:
            if reading.entity.kind == "host":
                host |= _host_numbers(reading)
            elif path := _path(reading):
                self._see(path, reading, now_ns)
        if host:
            _add(self._host, self._of_host(host, now_ns), now_ns)
        self._expire(now_ns)

    def around(self, cgroup: str | None, time_ns: int) -> list[MemoryUse | HostMemory]:
        """The amounts of a cgroup, its ancestors and the host in the minutes before a moment."""
        found: list[MemoryUse | HostMemory] = [
            piece.evidence() for piece in self._host if _is_near(piece.time_ns, time_ns)
        ]
        for path in lineage(cgroup) if cgroup else ():
            if (kept := self._cgroups.get(path)) is not None:
                found += [use.evidence(path) for use in kept.ring if _is_near(use.time_ns, time_ns)]
        return found

    def _see(self, path: str, reading: Reading, now_ns: int) -> None:
        numbers = self._layout(reading.series).pick(reading.values)
        if numbers.current is None:
            return
        kept = self._cgroups.get(path)
        if kept is None:
            kept = self._cgroups[path] = _Cgroup(reading.entity.key)
        elif kept.key != reading.entity.key:  # made anew under the same path: its totals began at zero
            kept.key, kept.stalls = reading.entity.key, _Stalls()
        some, full = kept.stalls.shares(numbers.some_total, numbers.full_total, now_ns)
        use = _Use(
            now_ns,
            numbers.current,
            numbers.peak,
            numbers.limits,
            numbers.effective,
            numbers.owner,
            numbers.some_avg10 if numbers.some_avg10 is not None else some,
            numbers.full_avg10 if numbers.full_avg10 is not None else full,
        )
        _add(kept.ring, use, now_ns)
        self._cgroups.move_to_end(path)

    def _layout(self, series: tuple[Series, ...]) -> _Layout:
        layout = self._layouts.get(id(series))
        if layout is None or layout.series is not series:
            if len(self._layouts) >= _MOST_LAYOUTS:
                self._layouts.clear()
            layout = self._layouts[id(series)] = _Layout(series)
        return layout

    def _of_host(self, numbers: dict[str, Number], now_ns: int) -> _Host:
        _, full = self._host_stalls.shares(None, numbers.get("pressure.memory.full.total"), now_ns)
        average = numbers.get("pressure.memory.full.avg10")
        return _Host(
            now_ns,
            numbers.get("meminfo.MemTotal"),
            numbers.get("meminfo.MemAvailable"),
            numbers.get("meminfo.SwapTotal", numbers.get("swap.total")),
            numbers.get("meminfo.SwapFree", numbers.get("swap.free")),
            full if average is None else average / 100,
        )

    def _expire(self, now_ns: int) -> None:
        """Let go of cgroups that ended long ago, and of the oldest where there are too many."""
        while self._cgroups:
            path, kept = next(iter(self._cgroups.items()))
            if kept.ring[-1].time_ns >= now_ns - _KEEP_ENDED_NS and len(self._cgroups) <= _MOST_CGROUPS:
                return
            del self._cgroups[path]


class _Use(NamedTuple):
    time_ns: int
    current: Number
    peak: Number | None
    limits: tuple[tuple[str, Number], ...]
    effective: Number | None
    owner: str | None
    some: float | None
    full: float | None

    def evidence(self, path: str) -> MemoryUse:
        return MemoryUse(
            source=_SOURCE,
            time_ns=self.time_ns,
            cgroup=path,
            current=int(self.current),
            peak=_whole(self.peak),
            limits={file: int(limit) for file, limit in self.limits},
            effective_limit=_whole(self.effective),
            limit_cgroup=path if self.owner == "self" else self.owner,
            some_avg10=self.some,
            full_avg10=self.full,
        )


class _Host(NamedTuple):
    time_ns: int
    total: Number | None
    available: Number | None
    swap_total: Number | None
    swap_free: Number | None
    full: float | None

    def evidence(self) -> HostMemory:
        return HostMemory(
            source=_SOURCE,
            time_ns=self.time_ns,
            total=_whole(self.total),
            available=_whole(self.available),
            swap_total=_whole(self.swap_total),
            swap_free=_whole(self.swap_free),
            full_avg10=self.full,
        )


class _Stalls:
    """Shares of the time since the sweep before, from the totals of a pressure file in microseconds."""

    __slots__ = ("_before",)

    def __init__(self) -> None:
        self._before: tuple[int, Number | None, Number | None] | None = None

    def shares(
        self, some: Number | None, full: Number | None, now_ns: int
    ) -> tuple[float | None, float | None]:
        before, self._before = self._before, (now_ns, some, full)
        if before is None or now_ns <= before[0]:
            return None, None
        span_us = (now_ns - before[0]) / 1000
        return _share(before[1], some, span_us), _share(before[2], full, span_us)


class _Cgroup:
    __slots__ = ("key", "ring", "stalls")

    def __init__(self, key: str) -> None:
        self.key = key
        self.stalls = _Stalls()
        self.ring: list[_Use] = []


class _Numbers(NamedTuple):
    current: Number | None
    peak: Number | None
    some_total: Number | None
    full_total: Number | None
    some_avg10: float | None
    full_avg10: float | None
    limits: tuple[tuple[str, Number], ...]
    effective: Number | None
    owner: str | None


class _Layout:
    """Where the numbers stand in readings with one row of series."""

    def __init__(self, series: tuple[Series, ...]) -> None:
        self.series = series
        places = {one.source: place for place, one in enumerate(series)}
        self._limits = [(file, places[file]) for file in _LIMITS if file in places]
        self._effective = places.get(_EFFECTIVE)
        self._owner: str | None = None
        if self._effective is not None:
            owner = dict(series[self._effective].attributes).get("cgroup.limit.owner")
            self._owner = None if owner in (None, "host") else str(owner)
        self._current = places.get("memory.current")
        self._peak = places.get("memory.peak")
        self._totals = [places.get(f"memory.pressure.{kind}.total") for kind in ("some", "full")]
        self._averages = [places.get(f"memory.pressure.{kind}.avg10") for kind in ("some", "full")]

    def pick(self, values: Sequence[Number]) -> _Numbers:
        some_total, full_total = (_at(values, place) for place in self._totals)
        some, full = (_percent(_at(values, place)) for place in self._averages)
        return _Numbers(
            _at(values, self._current),
            _at(values, self._peak),
            some_total,
            full_total,
            some,
            full,
            tuple([(file, values[place]) for file, place in self._limits]),
            _at(values, self._effective),
            self._owner,
        )


def _add(ring: list[_Use] | list[_Host], piece: _Use | _Host, now_ns: int) -> None:
    """Put a piece at the end. The newest one always stays; before it they are spaced out with age."""
    if len(ring) > 1 and ring[-1].time_ns - ring[-2].time_ns < _SPACING_NS:
        ring.pop()
    ring.append(piece)  # type: ignore[arg-type]
    kept = list(_thinned(ring, now_ns))
    if len(kept) < len(ring):
        ring[:] = kept  # type: ignore[assignment]


def _thinned(ring: Sequence[_Use | _Host], now_ns: int) -> Iterator[_Use | _Host]:
    minute = None
    for piece in ring:
        age_ns = now_ns - piece.time_ns
        if age_ns > _KEEP_NS:
            continue
        if age_ns > _DENSE_NS:
            if piece.time_ns // _DENSE_NS == minute:
                continue
            minute = piece.time_ns // _DENSE_NS
        yield piece


def _host_numbers(reading: Reading) -> dict[str, Number]:
    """What a reading says of the host's memory, by source; swap of all devices together."""
    numbers = {
        series.source: value
        for series, value in reading.points
        if series.source.startswith(("meminfo.Mem", "meminfo.Swap", "pressure.memory."))
    }
    swap = [(s.source, value) for s, value in reading.points if s.source.startswith(_SWAP)]
    if swap:
        numbers["swap.total"] = sum(value for _, value in swap)
        numbers["swap.free"] = sum(value for source, value in swap if source.endswith(".free"))
    return numbers


def _path(reading: Reading) -> str:
    return str(reading.entity.attributes.get("process.linux.cgroup", "")).removeprefix("0::")


def _is_near(piece_ns: int, time_ns: int) -> bool:
    return time_ns - _KEEP_NS <= piece_ns <= time_ns + _AFTER_NS


def _share(before: Number | None, now: Number | None, span_us: float) -> float | None:
    if before is None or now is None or now < before:
        return None
    return min(1.0, (now - before) / span_us)


def _at(values: Sequence[Number], place: int | None) -> Number | None:
    return None if place is None else values[place]


def _percent(value: Number | None) -> float | None:
    return None if value is None else value / 100


def _whole(value: Number | None) -> int | None:
    return None if value is None else int(value)
