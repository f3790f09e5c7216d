"""Prometheus text exposition, as node_exporter's textfile collector takes it.

Names follow the OpenTelemetry specification (compatibility/prometheus_and_openmetrics.md): dots
become underscores, the unit and ``_total`` are appended, attributes become labels. There are no
timestamps: node_exporter refuses a file that has any.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import msgspec

from cgotel.model import Attributes, AttributeValue, Entity, Instrument, Number, Sweep
from cgotel.outputs import plain

_UNITS = {
    "By": ("bytes", "byte"),
    "bit": ("bits", "bit"),
    "s": ("seconds", "second"),
    "Hz": ("hertz", "hertz"),
    "J": ("joules", "joule"),
    "W": ("watts", "watt"),
    "V": ("volts", "volt"),
    "Cel": ("celsius", "celsius"),
}
_ANNOTATION = re.compile(r"\{[^}]*\}")
_NO_NAME = re.compile(r"[^a-zA-Z0-9:]+")
_NO_LABEL = re.compile(r"[^a-zA-Z0-9]+")
_HELP_ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n"})
_VALUE_ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})
_KEY = "cgotel.entity.key"
_HOST_LABELS = ("host.name", "host.id")


@dataclass(frozen=True, slots=True)
class _Family:
    """All samples of one name, by their labels."""

    kind: str
    description: str
    samples: dict[str, Number] = field(default_factory=dict)


def render(sweep: Sweep) -> str:
    """A sweep as text: each family once, with its HELP and TYPE and all of its samples.

    Where two metrics of different types come to the same name, or two points to the same name and
    labels, the first stays and a comment says how many did not: Prometheus would refuse it all. So it
    would a point that cannot be written, which a plugin may give.
    """
    readings = [reading for reading in sweep.readings if plain.fits(reading.entity.attributes.items())]
    unwritable = sum(len(r.values) for r in sweep.readings) - sum(len(r.values) for r in readings)
    taken = 0
    families: dict[str, _Family] = {}
    named: dict[Instrument, _Family | None] = {}
    alike = _alike(reading.entity for reading in readings)
    for reading in readings:
        own = _own_labels(reading.entity, alike)
        labels: dict[int, str | None] = {}
        for series, raw in reading.points:
            if series.instrument not in named:
                named[series.instrument] = _family(series.instrument, families)
            family = named[series.instrument]
            if id(series.attributes) not in labels:
                labels[id(series.attributes)] = _series_labels(own, series.attributes)
            key, value = labels[id(series.attributes)], plain.number(series, raw)
            if key is None or value is None:
                unwritable += 1
            elif family is None or key in family.samples:
                taken += 1
            else:
                family.samples[key] = value
    lines = (line for name, family in families.items() for line in _lines(name, family) if family.samples)
    return "".join([*lines, *_comments(taken, unwritable)])


def _comments(taken: int, unwritable: int) -> Iterator[str]:
    if taken:
        yield f"# {taken} points are left out: their name and labels were taken\n"
    if unwritable:
        yield f"# {unwritable} points are left out: no finite number, or attributes of no plain value\n"


def metric_name(instrument: Instrument) -> str:
    """``cgroup.cpu.throttled.time`` in ``s`` as ``cgroup_cpu_throttled_time_seconds_total``."""
    words = [word for word in _NO_NAME.split(instrument.name) if word]
    is_counter = instrument.kind == "counter"
    if is_counter and words[-1:] == ["total"]:
        words.pop()  # it goes behind the unit
    unit = _unit(instrument)
    if unit and unit not in words:
        words.append(unit)
    if is_counter:
        words.append("total")
    name = "_".join(words)
    return f"_{name}" if name[:1].isdigit() else name


def _unit(instrument: Instrument) -> str:
    """A UCUM unit as the word that Prometheus uses; annotations such as ``{process}`` say nothing."""
    if instrument.unit == "1":
        return "ratio" if instrument.kind == "gauge" else ""
    amount, slash, per = (_ANNOTATION.sub("", part) for part in instrument.unit.partition("/"))
    plural = _UNITS.get(amount, (amount, amount))[0]
    word = f"{plural}_per_{_UNITS.get(per, (per, per))[1]}" if slash else plural
    return _NO_LABEL.sub("_", word).strip("_")


def _family(instrument: Instrument, families: dict[str, _Family]) -> _Family | None:
    """The family of an instrument; None where its name belongs to a metric of another type."""
    kind = "counter" if instrument.kind == "counter" else "gauge"
    family = families.setdefault(metric_name(instrument), _Family(kind, instrument.description))
    return family if family.kind == kind else None


def _alike(entities: Iterable[Entity]) -> frozenset[str]:
    """Labels that more than one entity has: there the entity's key must tell them apart."""
    of = {(entity.kind, entity.key): _labels(_telling(entity)) for entity in entities}
    return frozenset(labels for labels, times in Counter(of.values()).items() if times > 1)


def _own_labels(entity: Entity, alike: frozenset[str]) -> Attributes:
    attributes = _telling(entity)
    return (*attributes, (_KEY, entity.key)) if _labels(attributes) in alike else attributes


def _telling(entity: Entity) -> Attributes:
    """Of a host, its name and id: what else is known of it tells no series from another."""
    if entity.kind != "host":
        return tuple(entity.attributes.items())
    return tuple((key, value) for key, value in entity.attributes.items() if key in _HOST_LABELS)


def _series_labels(own: Attributes, attributes: Attributes) -> str | None:
    """The labels of a point; None where an attribute cannot be one."""
    return _labels((*own, *attributes)) if plain.fits(attributes) else None


def _labels(attributes: Iterable[tuple[str, AttributeValue]]) -> str:
    """Attributes as labels by name; those that come to the same name are joined by ``;``."""
    values: dict[str, list[str]] = {}
    for key, value in sorted(attributes, key=lambda attribute: attribute[0]):
        values.setdefault(_label_name(key), []).append(_text(value))
    if not values:
        return ""
    pairs = (f'{name}="{";".join(found).translate(_VALUE_ESCAPES)}"' for name, found in values.items())
    return "{" + ",".join(pairs) + "}"


def _label_name(key: str) -> str:
    name = _NO_LABEL.sub("_", key).strip("_") or "_"
    return f"key_{name}" if name[0].isdigit() else name


def _text(value: AttributeValue) -> str:
    """An attribute's value as the specification writes what is no string: JSON."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _lines(name: str, family: _Family) -> Iterator[str]:
    yield f"# HELP {name} {family.description.translate(_HELP_ESCAPES)}\n"
    yield f"# TYPE {name} {family.kind}\n"
    for labels, value in family.samples.items():
        yield f"{name}{labels} {value!r}\n"
