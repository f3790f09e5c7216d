"""The words that every part of cgotel speaks: plain, immutable data, no I/O.

A :class:`Reading` keeps the numbers as the kernel printed them. The :class:`Series` beside each
number knows both worlds: ``source`` names the kernel file and key (``cpu.stat.user_usec``), the
:class:`Instrument` names the OpenTelemetry metric, and ``divisor`` leads from one to the other.
Nothing is lost on the way: an output that speaks the kernel's language writes the integer as it
is, one that speaks OpenTelemetry divides.

What was not measured has no point. There is no zero, no NaN and no sentinel for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, TypeAlias

AttributeValue: TypeAlias = str | int | float | bool | tuple[str, ...]
Attributes: TypeAlias = tuple[tuple[str, AttributeValue], ...]
Number: TypeAlias = int | float

NO_ATTRIBUTES: Mapping[str, AttributeValue] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Instrument:
    """The static description of one metric, declared once, beside the collector that fills it.

    ``name`` and ``unit`` (UCUM) follow the OpenTelemetry semantic conventions 1.44. ``number``
    says whether points are integers or doubles once converted to ``unit``.
    """

    name: str
    kind: Literal["counter", "updowncounter", "gauge"]
    unit: str
    description: str
    number: Literal["int", "double"] = "int"

    def __post_init__(self) -> None:
        if self.kind not in ("counter", "updowncounter", "gauge"):
            raise ValueError(f"{self.name}: kind {self.kind!r} is no counter, updowncounter or gauge")
        if self.number not in ("int", "double"):
            raise ValueError(f"{self.name}: number {self.number!r} is neither int nor double")

    def series(
        self,
        source: str,
        divisor: int = 1,
        attributes: Mapping[str, AttributeValue] = NO_ATTRIBUTES,
    ) -> Series:
        """One time series of this instrument, filled from the kernel's ``source``."""
        return Series(self, source, divisor, tuple(attributes.items()))


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """An instrument with one set of attributes; made once, kept, compared by identity.

    ``source`` is the kernel's own name, ``file.key`` (``memory.stat.anon``, ``io.stat.8:0.rbytes``),
    or a name in the same style where cgotel derives the value. ``divisor`` turns the kernel's unit
    into the instrument's (1_000_000 from microseconds to seconds, 100 from percent to a ratio).
    """

    instrument: Instrument
    source: str
    divisor: int = 1
    attributes: Attributes = ()

    def __post_init__(self) -> None:
        if not isinstance(self.divisor, int) or self.divisor < 1:
            raise TypeError(f"{self.source}: divisor must be a whole number from 1: {self.divisor!r}")

    def convert(self, raw: Number) -> Number:
        """The kernel's number in the instrument's unit."""
        if self.instrument.number == "double":
            return raw / self.divisor
        return raw if self.divisor == 1 else int(raw) // self.divisor


Point: TypeAlias = tuple[Series, Number]


@dataclass(frozen=True, slots=True)
class Entity:
    """What a reading is about: the host, a cgroup, a GPU, a power zone, the agent itself.

    ``key`` is unique among living and past entities of a kind: a cgroup that is removed and made
    again under the same path is a new entity, so that its counters restart truthfully.
    ``began_ns`` is when its counters stood at zero (Unix time in nanoseconds), None if unknown.
    """

    kind: str
    key: str
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)
    began_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """One entity at one instant (Unix time in nanoseconds): ``values[i]`` belongs to ``series[i]``.

    Two rows instead of pairs, because an entity's series seldom change and its values always do:
    ``series`` is the very same tuple from sweep to sweep as long as it holds the same series, so
    that an output may prepare its layout once and look at nothing but the values afterwards.
    """

    entity: Entity
    time_ns: int
    series: tuple[Series, ...]
    values: Sequence[Number]

    @classmethod
    def of(cls, entity: Entity, time_ns: int, points: Iterable[Point]) -> Reading:
        """A reading from (series, value) pairs: the comfortable way, for what is not hot."""
        pairs = list(points)
        return cls(entity, time_ns, tuple(s for s, _ in pairs), [value for _, value in pairs])

    @property
    def points(self) -> Iterator[Point]:
        """The (series, value) pairs."""
        return zip(self.series, self.values, strict=True)

    def __repr__(self) -> str:
        return f"<Reading of {self.entity.kind} {self.entity.key!r}: {len(self.values)} points>"

    def value(self, source: str) -> Number | None:
        """The kernel's number under its own name (``memory.current``), None if not measured."""
        return next((raw for series, raw in self.points if series.source == source), None)

    def metric(self, name: str, **attributes: AttributeValue) -> Number | None:
        """A metric in its own unit, None if not measured.

        Attributes tell points apart, with ``_`` for ``.``: ``metric("container.cpu.time",
        cpu_mode="user")``. Raises `LookupError` where several points fit.
        """
        found = self._find(name, attributes)
        return None if found is None else found[0].convert(found[1])

    def attribute(self, name: str, key: str) -> AttributeValue | None:
        """An attribute of the only point of a metric, None if not measured."""
        found = self._find(name, {})
        return None if found is None else dict(found[0].attributes).get(key)

    def _find(self, name: str, attributes: Mapping[str, AttributeValue]) -> Point | None:
        found: list[Point] = []
        for series, raw in self.points:
            if series.instrument.name == name:
                have = {key.replace(".", "_"): value for key, value in series.attributes}
                if attributes.items() <= have.items():
                    found.append((series, raw))
        if len(found) > 1:
            raise LookupError(f"{name} has {len(found)} points that differ by {_keys(found)}")
        return found[0] if found else None


def _keys(points: Iterable[Point]) -> str:
    return ", ".join(sorted({key.replace(".", "_") for series, _ in points for key, _ in series.attributes}))


@dataclass(frozen=True, slots=True)
class Sweep:
    """All readings of one instant; ``ended`` are the entities that were there last time only."""

    time_ns: int
    readings: list[Reading]
    ended: tuple[Entity, ...] = ()


class Severity:
    """OpenTelemetry severity numbers (logs data model) that cgotel uses."""

    INFO = 9
    WARN = 13
    ERROR = 17
    FATAL = 21


@dataclass(frozen=True, slots=True)
class Event:
    """A log event: something that happened at ``time_ns`` and was seen at ``observed_ns``.

    ``uid`` is stable: a replay of the same event carries the same one.
    """

    name: str
    time_ns: int
    observed_ns: int
    severity: int
    entity: Entity
    body: str
    uid: str
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)


def count_points(readings: Iterable[Reading]) -> int:
    """How many points the readings hold together."""
    return sum(len(reading.values) for reading in readings)
