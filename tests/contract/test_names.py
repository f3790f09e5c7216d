"""The names, units and kinds of every metric obey the rules of OpenTelemetry, and its conventions.

The rules: docs/general/naming.md and docs/general/metrics.md of the semantic conventions 1.44.
"""

import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import msgspec
from opentelemetry.semconv._incubating import metrics as conventions

from cgotel import plugins, self_metrics
from cgotel.kernel.roots import Roots
from cgotel.model import Instrument

UNITS = {"1", "s", "By", "Hz", "J", "W", "Cel"}
UNIT_WORDS = """
    bytes byte kib mib gib kb mb seconds second secs usec msec nsec us ms ns percent ratio joules watts hertz
"""
BORROWED = {f"system.cpu.load_average.{window}" for window in ("1m", "5m", "15m")}
"""Names of the Collector's own hostmetrics receiver, which the conventions lack."""

PART = re.compile(r"[a-z0-9]+(_[a-z0-9]+)*")


def instruments() -> list[Instrument]:
    """Every metric that the agent, its outputs, or any collector with all switched on may send."""
    registry = plugins.load(environ={plugins.RESCUE: "none"})
    sent_by_outputs = [
        instrument for kind in registry.outputs.values() for instrument in kind(kind.Config()).instruments
    ]
    found = {instrument.name: instrument for instrument in (*self_metrics.INSTRUMENTS, *sent_by_outputs)}
    for kind in registry.collectors.values():
        switches = {field.name: True for field in msgspec.structs.fields(kind.Config) if field.type is bool}
        for instrument in kind(kind.Config(**switches), Roots()).instruments:
            assert found.setdefault(instrument.name, instrument) == instrument, "one name, two metrics"
    return list(found.values())


INSTRUMENTS = instruments()
NAMES = {instrument.name for instrument in INSTRUMENTS}


def every(rule: Callable[[Instrument], bool]) -> Callable[[], None]:
    """A test that no instrument breaks a rule."""

    def test() -> None:
        assert [instrument for instrument in INSTRUMENTS if not rule(instrument)] == []

    test.__doc__ = rule.__doc__
    return test


def conventional() -> Iterator[tuple[str, SimpleNamespace]]:
    """The metrics of the conventions, from the functions that make them."""

    class Meter:
        def __getattr__(self, create: str):
            kind = create.removeprefix("create_").removeprefix("observable_").replace("_", "")
            return lambda **told: SimpleNamespace(kind=kind, **told)

    for module in pkgutil.iter_modules(conventions.__path__, f"{conventions.__name__}."):
        for name, create in inspect.getmembers(importlib.import_module(module.name), inspect.isfunction):
            if name.startswith("create_"):
                more = [None] * (len(inspect.signature(create).parameters) - 1)
                metric = create(Meter(), *more)
                yield metric.name, metric


CONVENTIONS = dict(conventional())


def test_there_is_something_to_check() -> None:
    assert len(INSTRUMENTS) > 150
    assert len(CONVENTIONS) > 150


@every
def test_a_name_is_lower_case_in_dotted_namespaces(instrument: Instrument) -> bool:
    first, *rest = instrument.name.split(".")
    return bool(rest) and all(PART.fullmatch(part) for part in (first, *rest))


@every
def test_a_name_is_not_the_namespace_of_another(instrument: Instrument) -> bool:
    """The policy metric_namespace_collision; the conventions' own metrics count too.

    They have a collision of their own: hw.temperature, hw.temperature.limit.
    """
    return instrument.name in CONVENTIONS or not any(
        name.startswith(f"{instrument.name}.") for name in NAMES | CONVENTIONS.keys()
    )


@every
def test_a_name_is_not_inside_a_metric_of_the_conventions(instrument: Instrument) -> bool:
    parts = instrument.name.split(".")
    inside_none = CONVENTIONS.keys().isdisjoint(".".join(parts[:length]) for length in range(1, len(parts)))
    return inside_none or instrument.name in CONVENTIONS


@every
def test_a_unit_is_ucum_and_an_annotation_is_singular(instrument: Instrument) -> bool:
    unit = instrument.unit.removesuffix("/s")
    return unit in UNITS or re.fullmatch(r"\{([a-z_]+[^s]|[a-z_]+ss|series)\}", unit) is not None


@every
def test_a_unit_is_not_in_the_name(instrument: Instrument) -> bool:
    return set(UNIT_WORDS.split()).isdisjoint(re.split(r"[._]", instrument.name))


@every
def test_a_counter_is_not_called_a_total_or_a_count(instrument: Instrument) -> bool:
    endings = ("total", "count") if instrument.kind == "counter" else ("total",)
    return not instrument.name.endswith(endings)


@every
def test_an_updowncounter_is_never_plural(instrument: Instrument) -> bool:
    plural = instrument.name.endswith("s") and not instrument.name.endswith(("ss", "status"))
    return instrument.kind != "updowncounter" or not plural or instrument.name in CONVENTIONS


@every
def test_time_and_cpus_are_doubles(instrument: Instrument) -> bool:
    divisible = instrument.unit == "s" or (
        instrument.unit == "{cpu}" and not instrument.name.endswith(".count")
    )
    return not divisible or instrument.number == "double"


@every
def test_bytes_and_counts_are_whole(instrument: Instrument) -> bool:
    whole = instrument.unit.startswith("By") or instrument.name.endswith((".count", ".events", ".operations"))
    return not whole or instrument.number == "int"


@every
def test_utilization_is_a_share(instrument: Instrument) -> bool:
    share = ("gauge", "1", "double")
    is_share = (instrument.kind, instrument.unit, instrument.number) == share
    return is_share or not instrument.name.endswith("utilization")


@every
def test_a_running_time_is_a_counter_of_seconds(instrument: Instrument) -> bool:
    running = instrument.name.endswith((".time", "_time"))
    return not running or (instrument.kind, instrument.unit) == ("counter", "s")


@every
def test_a_description_is_one_plain_line(instrument: Instrument) -> bool:
    return re.fullmatch(r"(zswap|[A-Z])[^\n|]{3,}[^\s.|]", instrument.description) is not None


@every
def test_a_metric_of_the_conventions_is_as_they_say(instrument: Instrument) -> bool:
    convention = CONVENTIONS.get(instrument.name, instrument)
    return (instrument.kind, instrument.unit) == (convention.kind, convention.unit)


@every
def test_any_other_metric_is_in_a_place_of_its_own(instrument: Instrument) -> bool:
    known = instrument.name in CONVENTIONS.keys() | BORROWED
    return (
        known
        or re.match(r"cgroup\.|cgotel\.|nvidia\.gpu\.|system\.\w+\.linux\.", instrument.name) is not None
    )
