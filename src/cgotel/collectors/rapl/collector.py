"""The rapl collector: a reading for each zone that is reported, with its energy and its power."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cgotel.collectors import hardware
from cgotel.collectors.instruments import Instruments
from cgotel.collectors.rapl.meter import Meter
from cgotel.collectors.rapl.selection import Role, select
from cgotel.contract import Collector, CollectorSettings, SourceStatus, State, Tick, Unavailable
from cgotel.kernel import powercap
from cgotel.kernel.powercap import Zone
from cgotel.kernel.roots import Roots
from cgotel.kernel.source import state_of
from cgotel.model import Entity, Instrument, Reading, Series

_MICRO = 1_000_000
_STILL_AFTER_NS = 5 * 10**9
_MOST_WATTS: dict[Role, int] = {"package": 2_000, "memory": 2_000, "part": 2_000, "host": 20_000}
_TYPES: dict[Role, str] = {"package": "cpu", "memory": "memory", "part": "cpu"}

# as Telegraf's intel_powerstat calls them
_POWER_FIELDS: dict[Role, str] = {
    "package": "current_power_consumption_watts",
    "memory": "current_dram_power_consumption_watts",
    "host": "current_power_consumption_watts",
}

_NO_ZONES = SourceStatus(
    "powercap",
    State.ABSENT,
    "no RAPL zone: a virtual machine, a processor without RAPL, or a module that is not loaded",
    "modprobe intel_rapl_msr, on bare metal",
)
_HIDDEN = "the zone is listed, and hidden from here"
_HIDDEN_REMEDY = "run the agent on the host, or unmask /sys/devices/virtual/powercap in its container"
_STILL = "its counter does not move: nothing is measured there"
_DENIED = "energy_uj can be read by root alone since Linux 5.10"
_DENIED_REMEDY = "run as root, or give the agent CAP_DAC_READ_SEARCH (AmbientCapabilities= in its unit)"


class RaplConfig(CollectorSettings, frozen=True):
    """``[collectors.rapl]``."""

    parts: bool = False
    """Also ``core`` and ``uncore``, which their package's energy holds already; never AMD's ``core``."""


@dataclass(slots=True)
class _Metered:
    """A zone with its counter and what is said of it."""

    zone: Zone
    meter: Meter
    entity: Entity
    series: tuple[Series, ...]
    energy_alone: tuple[Series, ...]
    status: SourceStatus


class RaplCollector(Collector):
    """Energy and power of processors and their memory, by RAPL."""

    name = "rapl"
    Config = RaplConfig
    needs = ("/sys/class/powercap/intel-rapl:*/energy_uj, readable by root or with CAP_DAC_READ_SEARCH",)

    config: RaplConfig

    def __init__(self, config: RaplConfig, roots: Roots) -> None:
        super().__init__(config, roots)
        make = Instruments()
        energy, power = hardware.energy(make), hardware.power(make)
        host = make.counter("hw.host.energy", "J", "Energy that the whole host used", number="double")
        host_power = make.gauge("hw.host.power", "W", "Mean power of the host since the last sweep", "double")
        part = make.counter(
            "cgotel.rapl.subzone.energy", "J", "Energy of a part of a package, which holds it", "double"
        )
        self._instruments: dict[Role, tuple[Instrument, ...]] = {
            "package": (energy, power),
            "memory": (energy, power),
            "host": (host, host_power),
            "part": (part,),
        }
        self.instruments = tuple(make.instruments.values())
        self._listed: list[str] | None = None
        self._amd = False
        self._metered: dict[str, _Metered] = {}
        self._silent: dict[str, SourceStatus] = {}

    def start(self) -> None:
        self._amd = powercap.is_amd(self.roots.proc)
        self._look()
        statuses = [self._probed(metered) for metered in self._metered.values()]
        statuses += self._silent.values()
        if statuses and not any(status.state is State.OK for status in statuses):
            first = statuses[0]
            self.close()
            raise Unavailable(SourceStatus(self.name, first.state, first.reason, first.remedy))

    def collect(self, tick: Tick) -> Iterator[Reading]:
        self._look()
        for metered in self._metered.values():
            reading = self._read(metered, tick)
            if reading is not None:
                yield reading

    def sources(self) -> Iterator[SourceStatus]:
        if not self._metered and not self._silent:
            yield _NO_ZONES
        for metered in self._metered.values():
            yield metered.status
        yield from self._silent.values()

    def close(self) -> None:
        self._listed = None
        self._metered.clear()
        self._silent.clear()

    def _look(self) -> None:
        """Find the zones again where what is listed has changed, or something could not be read."""
        listed = powercap.zone_ids(self.roots.sys)
        if listed == self._listed and not self._silent:
            return
        self._listed = listed
        zones: list[Zone] = []
        self._silent = {}
        for zone_id in listed:
            try:
                zones.append(powercap.zone(self.roots.sys, zone_id))
            except (OSError, ValueError) as error:
                self._silent[zone_id] = _silence(zone_id, error)
        before, self._metered = self._metered, {}
        for zone, role in select(zones, self._amd, self.config.parts):
            known = before.get(zone.id)
            same = known is not None and known.zone == zone
            self._metered[zone.id] = known if known is not None and same else self._new(zone, role, zones)

    def _new(self, zone: Zone, role: Role, zones: list[Zone]) -> _Metered:
        parent = next((z for z in zones if z.id == zone.parent), None)
        attributes = {"hw.id": zone.id, "hw.name": zone.name}
        if parent is not None:
            attributes |= {"hw.parent": parent.id}
        of_series = {"hw.type": _TYPES[role]} if role in _TYPES else {}
        energy, *power = self._instruments[role]
        series = [energy.series("energy_uj", _MICRO, of_series)]
        series += [one.series(_POWER_FIELDS[role], attributes=of_series) for one in power]
        status = SourceStatus(f"powercap/{zone.id}", State.OK)
        meter = Meter(_MOST_WATTS[role])
        entity = Entity("power_zone", zone.id, attributes)
        return _Metered(zone, meter, entity, tuple(series), tuple(series[:1]), status)

    def _read(self, metered: _Metered, tick: Tick) -> Reading | None:
        zone, meter = metered.zone, metered.meter
        try:
            raw = powercap.energy_uj(self.roots.sys, zone.id)
        except (OSError, ValueError) as error:
            metered.status = _silence(zone.id, error)
            return None
        if not meter.look(raw, zone.range_uj, tick.monotonic_ns, tick.time_ns):
            old = metered.entity
            metered.entity = Entity(old.kind, old.key, old.attributes, meter.began_ns)
        status = SourceStatus(f"powercap/{zone.id}", State.OK)
        if meter.total_uj == 0:
            still = tick.time_ns - (meter.began_ns or 0) >= _STILL_AFTER_NS
            metered.status = SourceStatus(status.name, State.FAILED, _STILL) if still else status
            return Reading(metered.entity, tick.time_ns, (), [])
        metered.status = status
        if meter.watts is None or len(metered.series) == 1:
            return Reading(metered.entity, tick.time_ns, metered.energy_alone, [meter.total_uj])
        return Reading(metered.entity, tick.time_ns, metered.series, [meter.total_uj, meter.watts])

    def _probed(self, metered: _Metered) -> SourceStatus:
        try:
            powercap.energy_uj(self.roots.sys, metered.zone.id)
        except (OSError, ValueError) as error:
            metered.status = _silence(metered.zone.id, error)
        return metered.status


def _silence(zone_id: str, error: OSError | ValueError) -> SourceStatus:
    """Why a zone says nothing, and what to do about it."""
    name = f"powercap/{zone_id}"
    if isinstance(error, ValueError):
        return SourceStatus(name, State.FAILED, str(error))
    state = state_of(error)
    if state is State.ABSENT:
        return SourceStatus(name, State.MASKED, _HIDDEN, _HIDDEN_REMEDY)
    if state is State.DENIED:
        return SourceStatus(name, state, _DENIED, _DENIED_REMEDY)
    return SourceStatus(name, state, f"{error.strerror or error}")
