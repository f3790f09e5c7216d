"""The options of ``<Module cgotel_collectd>``: each with its type, and the key of cgotel.toml that it is.

An option that cannot be meant is a fault that names it. All are looked at, so that all are told.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal, Protocol

import msgspec

from cgotel.collectors.cgroup import CgroupConfig
from cgotel.collectors.host import HostConfig
from cgotel.collectors.pressure import PressureConfig
from cgotel.config import AgentSettings, Configuration

AGENT = "agent"

_TABLES: Mapping[str, type[msgspec.Struct]] = MappingProxyType(
    {"agent": AgentSettings, "cgroup": CgroupConfig, "host": HostConfig, "pressure": PressureConfig}
)

_EXPECTED = {
    "number": "one number",
    "whole": "one whole number",
    "boolean": "true or false",
    "string": "one string in quotes",
    "strings": "one or more strings in quotes",
}


@dataclass(frozen=True, slots=True)
class Option:
    """``keys`` are ``table.key`` of cgotel.toml, ``collectors.`` left out; none for collectd's own."""

    name: str
    kind: Literal["number", "whole", "boolean", "string", "strings"]
    example: str
    meaning: str
    keys: tuple[str, ...] = ()


OPTIONS = (
    Option(
        "Interval", "number", "10", "Seconds between sweeps; collectd's own Interval", ("agent.interval",)
    ),
    Option("Include", "strings", '"/system.slice/**"', "Only these cgroups, by path", ("cgroup.include",)),
    Option("Exclude", "strings", '"/user.slice"', "Not these, nor what is below", ("cgroup.exclude",)),
    Option("Kinds", "strings", '"container" "service"', "Only cgroups of these kinds", ("cgroup.kinds",)),
    Option("MaxDepth", "whole", "4", "How deep below the root to look; the root is 0", ("cgroup.max_depth",)),
    Option(
        "PressureAverages",
        "boolean",
        "false",
        "Also the kernel's running averages of pressure",
        ("cgroup.pressure_averages", "pressure.averages"),
    ),
    Option(
        "SlowInterval", "number", "60", "Seconds between reads of costly files", ("cgroup.slow_interval",)
    ),
    Option("KeepOpenFiles", "whole", "8192", "Files kept open between sweeps", ("cgroup.keep_open_files",)),
    Option("MaxSeries", "whole", "200000", "Series at most; the rest is left out", ("agent.max_series",)),
    Option("Host", "boolean", "true", "Also the host as a whole", ("host.enabled", "pressure.enabled")),
    Option("Notifications", "boolean", "true", "An OOM kill is a notification"),
    Option("Meta", "boolean", "true", "A cgroup's whole path goes along as metadata of each value"),
    Option("Config", "string", '"/etc/cgotel/cgotel.toml"', "More keys, in a file; options go before it"),
)

_BY_NAME = {option.name.lower(): option for option in OPTIONS}


class Node(Protocol):
    """A ``collectd.Config``: a key, its values (numbers are float), and what stands within."""

    key: str
    values: Sequence[object]
    children: Sequence[Node]


@dataclass(frozen=True, slots=True)
class Options:
    """What was set: ``settings`` by table and key. None, or an empty table: not set."""

    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    config: str | None = None
    notifications: bool = True
    meta: bool = True

    @property
    def interval(self) -> float | None:
        """Seconds between reads; None: collectd's own."""
        interval: float | None = self.settings.get(AGENT, {}).get("interval")
        return interval

    def over(self, configuration: Configuration) -> Configuration:
        """The configuration with what the options say instead."""
        settings = dict(self.settings)
        agent = msgspec.structs.replace(configuration.agent, **settings.pop(AGENT, {}))
        changed = {
            name: msgspec.structs.replace(configuration.collectors[name], **values)
            for name, values in settings.items()
            if name in configuration.collectors
        }
        return replace(configuration, agent=agent, collectors={**configuration.collectors, **changed})


def parse(nodes: Iterable[Node]) -> tuple[Options, list[str]]:
    """The options of a block, and one line for each fault. Never raises for what a user wrote."""
    faults: list[str] = []
    given: dict[str, Any] = {}
    for node in nodes:
        option = _BY_NAME.get(node.key.lower())
        if option is None:
            faults.append(_unknown(node.key))
        elif node.children:
            faults.append(f"option {option.name}: is no block")
        else:
            _take(option, node.values, given, faults)
    settings: dict[str, dict[str, Any]] = {}
    for option in OPTIONS:
        for table, _, key in (key.partition(".") for key in option.keys if option.name in given):
            settings.setdefault(table, {})[key] = given[option.name]
    return Options(
        settings, given.get("Config"), given.get("Notifications", True), given.get("Meta", True)
    ), faults


def _unknown(key: str) -> str:
    close = difflib.get_close_matches(key, [option.name for option in OPTIONS], n=1)
    hint = f"did you mean {close[0]}? " if close else ""
    return f"option {key}: unknown; {hint}allowed: {', '.join(option.name for option in OPTIONS)}"


def _take(option: Option, values: Sequence[object], given: dict[str, Any], faults: list[str]) -> None:
    """Note one line's value, or its fault; lines of strings add up, as collectd's own plugins have it."""
    value = _value(option, values)
    if value is None:
        shown = " ".join(map(repr, values)) or "nothing"
        faults.append(f"option {option.name}: must be {_EXPECTED[option.kind]}, got {shown}")
        return
    if option.kind == "strings":
        value = (*given.get(option.name, ()), *value)
    elif option.name in given:
        faults.append(f"option {option.name}: stands there twice")
        return
    found = list(_refused(option, value))
    faults += found
    if not found:
        given[option.name] = value


def _value(option: Option, values: Sequence[object]) -> Any:
    if option.kind == "strings":
        return tuple(values) if values and all(isinstance(v, str) for v in values) else None
    if len(values) != 1:
        return None
    value = values[0]
    match option.kind:
        case "string":
            return value if isinstance(value, str) else None
        case "boolean":
            return value if isinstance(value, bool) else None
        case _ if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        case "whole":
            return int(value) if float(value).is_integer() else None
        case _:
            return float(value)


def _refused(option: Option, value: object) -> Iterator[str]:
    """What the configuration has against a value, in its words."""
    for table, _, key in (key.partition(".") for key in option.keys):
        try:
            msgspec.convert({key: value}, _TABLES[table])
        except msgspec.ValidationError as error:
            yield f"option {option.name}: {str(error).partition(' - at `$')[0]}"
            return
