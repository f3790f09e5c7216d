"""The configuration: one TOML file, strict, each value with where it came from.

An unknown key, a wrong type or a value that cannot be meant is one `ConfigError` that names the
file, the line and the key, and says what is allowed. Nothing starts before all of it was checked.
"""

from __future__ import annotations

import difflib
import math
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeVar, get_args

import msgspec

DEFAULT_PATH = "/etc/cgotel/cgotel.toml"
_LARGEST = 1 << 20

Table = TypeVar("Table", bound=msgspec.Struct)


class ConfigError(Exception):
    """One clear line: what is wrong, where, and what is allowed. The exit status is 2."""


class AgentSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``[agent]``."""

    interval: Annotated[float, msgspec.Meta(ge=0.1, le=86400)] = 10.0
    """Seconds between sweeps. OTEL_METRIC_EXPORT_INTERVAL (milliseconds) sets it too."""
    max_series: Annotated[int, msgspec.Meta(ge=1)] = 200_000
    """Series that are exported at most; what is left out is counted and said."""
    outputs: tuple[str, ...] | None = None
    """Outputs by name; unset: otlp when an endpoint is configured, else console."""
    state_directory: str | None = None
    """Where verdicts and waiting events are kept; unset: systemd's STATE_DIRECTORY, else
    /var/lib/cgotel for root, else below XDG_STATE_HOME or ~/.local/state."""


class RestartSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``[restarts]``: why runs end."""

    enabled: bool = True
    """Whether watchers run and ends are judged."""
    settle: Annotated[float, msgspec.Meta(ge=0.1, le=60)] = 3.0
    """Seconds for which an end waits for late evidence before it is judged."""
    keep_incidents: Annotated[int, msgspec.Meta(ge=1)] = 10_000
    """Verdicts kept, with their evidence; the oldest are dropped."""
    keep_events: Annotated[int, msgspec.Meta(ge=1)] = 10_000
    """Events kept for outputs that cannot take them now; the oldest are dropped and counted."""


class PluginSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``[plugins]``."""

    disabled: tuple[str, ...] = ()
    """Plugins that are not loaded, by the name that `cgotel plugins` shows."""


@dataclass(frozen=True, slots=True)
class Document:
    """A TOML file as it was read. ``path`` None: no file.

    ``lines`` say where keys stand, found by eye: for people to look at, never to decide by.
    """

    path: str | None = None
    tables: Mapping[str, Any] = field(default_factory=dict)
    lines: Mapping[str, int] = field(default_factory=dict)

    def has(self, key: str) -> bool:
        """Whether the file sets a dotted key, in whichever of TOML's ways."""
        found: Any = self.tables
        for part in key.split("."):
            if not isinstance(found, Mapping) or part not in found:
                return False
            found = found[part]
        return True

    def origin(self, key: str) -> str:
        """``file:line`` of a key, the file alone where its line was not found, or ``default``."""
        if not self.has(key):
            return "default"
        return f"{self.path}:{self.lines[key]}" if key in self.lines else str(self.path)

    def where(self, key: str) -> str:
        """``file:line`` of a dotted key, or of the nearest table around it."""
        while key and key not in self.lines:
            key = key.rpartition(".")[0]
        return f"{self.path}:{self.lines[key]}" if key else str(self.path)

    def error(self, key: str, message: str) -> ConfigError:
        """An error that names the file, the line and the key."""
        return ConfigError(f"{self.where(key)}: {key}: {message}")

    def table(self, name: str, kind: type[Table]) -> Table:
        """One table as its type; a missing table is all defaults. Raises `ConfigError`."""
        values: Any = self.tables
        for part in name.split("."):
            values = values.get(part, {})
            if not isinstance(values, dict):
                raise self.error(name, "must be a table")
        self.check_keys(name, values, [f.encode_name for f in msgspec.structs.fields(kind)])
        for key, value in values.items():
            if isinstance(value, float) and not math.isfinite(value):
                raise self.error(f"{name}.{key}", f"must be a finite number, not {value}")
        try:
            return msgspec.convert(values, kind)
        except msgspec.ValidationError as error:
            message, _, place = str(error).partition(" - at `$")
            key, _, inside = place.rstrip("`").partition("[")
            within = inside.partition("].")[2]  # the key of a table in an array of tables
            message = f"{within}: {_in_words(message)}" if within else _in_words(message)
            raise self.error(name + (key or _at_fault(values, kind)), message) from None

    def check_keys(self, table: str, values: Mapping[str, Any], allowed: list[str]) -> None:
        """Raise `ConfigError` for the first key of a table that is not among ``allowed``."""
        for key in values:
            if key not in allowed:
                dotted = f"{table}.{key}" if table else key
                close = difflib.get_close_matches(key, allowed, n=1)
                hint = f"did you mean {close[0]!r}? " if close else ""
                raise self.error(dotted, f"unknown key; {hint}allowed: {', '.join(sorted(allowed))}")


def _at_fault(values: Mapping[str, Any], kind: type[msgspec.Struct]) -> str:
    """The key whose value alone is refused, with a dot in front, where `msgspec` names none."""
    for key, value in values.items():
        try:
            msgspec.convert({key: value}, kind)
        except msgspec.ValidationError:
            return f".{key}"
    return ""


_WORDS = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "a boolean",
    "array": "an array",
    "object": "a table",
}


def _in_words(message: str) -> str:
    """What `msgspec` says, with TOML's words for types; what is no type of Python stays as it is."""
    if message.startswith("Expected `"):
        message = re.sub(r"`([^`]*)`", lambda types: _types(types[1]), message)
    return message[:1].lower() + message[1:] or "cannot be meant"


def _types(names: str) -> str:
    return " or ".join(_WORDS.get(name, name) for name in names.split(" | ") if name != "null")


def read(path: str | None) -> Document:
    """The file given, else `DEFAULT_PATH` where it exists, else no file. Raises `ConfigError`."""
    if path is None:
        if not os.path.exists(DEFAULT_PATH):
            return Document()
        path = DEFAULT_PATH
    try:
        with open(path, encoding="utf-8") as file:
            content = file.read(_LARGEST + 1)
        if len(content) > _LARGEST:
            raise ConfigError(f"{path}: larger than {_LARGEST} characters: no configuration of cgotel")
        tables = tomllib.loads(content)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 at byte {error.start}") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: not valid TOML: {error}") from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: cannot be meant: {type(error).__name__}, {error}") from None
    document = Document(path, tables, dict(_key_lines(content)))
    document.check_keys("", tables, ["agent", "collectors", "outputs", "plugins", "restarts", "watchers"])
    return document


_HEADER = re.compile(r"\s*+\[++([^\]]++)\]")
_PART = r"""(?:[\w-]++|"[^"]*+"|'[^']*+')"""
_KEY = re.compile(rf"\s*+({_PART}(?:\s*+\.\s*+{_PART})*+)\s*+=")


def _key_lines(content: str) -> Iterator[tuple[str, int]]:
    """Dotted key -> line number, found by eye: good enough to point at a line of valid TOML."""
    table = ""
    for number, line in enumerate(content.split("\n"), 1):
        if header := _HEADER.match(line):
            table = _plain(header[1])
            yield table, number
        elif key := _KEY.match(line):
            yield (f"{table}.{_plain(key[1])}" if table else _plain(key[1])), number


def _plain(key: str) -> str:
    return key.replace('"', "").replace("'", "").replace(" ", "")


@dataclass(frozen=True, slots=True)
class Configuration:
    """All tables, checked, each under its type."""

    document: Document
    agent: AgentSettings
    plugins: PluginSettings
    restarts: RestartSettings
    collectors: Mapping[str, msgspec.Struct]
    watchers: Mapping[str, msgspec.Struct]
    outputs: Mapping[str, msgspec.Struct]
    interval_origin: str = ""

    def origins(self) -> Iterator[tuple[str, Any, str]]:
        """Every effective value: (dotted key, value, where it came from); secrets as ``***``."""
        tables: dict[str, msgspec.Struct] = {
            "agent": self.agent,
            "plugins": self.plugins,
            "restarts": self.restarts,
        }
        tables |= {f"collectors.{name}": table for name, table in self.collectors.items()}
        tables |= {f"watchers.{name}": table for name, table in self.watchers.items()}
        tables |= {f"outputs.{name}": table for name, table in self.outputs.items()}
        for name, table in tables.items():
            for fields in msgspec.structs.fields(table):
                key = f"{name}.{fields.encode_name}"
                origin = self.document.origin(key)
                if key == "agent.interval" and self.interval_origin:
                    origin = self.interval_origin
                value = getattr(table, fields.name)
                yield key, "***" if value and _is_secret(fields.type) else value, origin


def _is_secret(annotation: Any) -> bool:
    """Whether a field is marked by ``msgspec.Meta(extra={"secret": True})``."""
    if isinstance(annotation, msgspec.Meta):
        return bool((annotation.extra or {}).get("secret"))
    return any(_is_secret(part) for part in (*get_args(annotation), *getattr(annotation, "__metadata__", ())))


def check(
    document: Document,
    collectors: Mapping[str, type[msgspec.Struct]],
    watchers: Mapping[str, type[msgspec.Struct]],
    outputs: Mapping[str, type[msgspec.Struct]],
    environ: Mapping[str, str] = os.environ,
    complete: bool = True,
) -> Configuration:
    """Check every table against its type. Raises `ConfigError`.

    ``complete`` is false when a plugin is disabled or broken: a table that nobody knows may be its.
    """
    for section, known in (("collectors", collectors), ("watchers", watchers), ("outputs", outputs)):
        found = document.tables.get(section, {})
        if not isinstance(found, dict):
            raise document.error(section, "must be a table")
        if complete:
            document.check_keys(section, found, list(known))
    agent = document.table("agent", AgentSettings)
    for name in agent.outputs or ():
        if name not in outputs:
            raise document.error(
                "agent.outputs", f"no output {name!r}; allowed: {', '.join(sorted(outputs))}"
            )
    agent, interval_origin = _interval_from(environ, document, agent)
    return Configuration(
        document,
        agent,
        document.table("plugins", PluginSettings),
        document.table("restarts", RestartSettings),
        {name: document.table(f"collectors.{name}", kind) for name, kind in collectors.items()},
        {name: document.table(f"watchers.{name}", kind) for name, kind in watchers.items()},
        {name: document.table(f"outputs.{name}", kind) for name, kind in outputs.items()},
        interval_origin,
    )


def _interval_from(
    environ: Mapping[str, str], document: Document, agent: AgentSettings
) -> tuple[AgentSettings, str]:
    """OTEL_METRIC_EXPORT_INTERVAL, unless the file says otherwise (OpenTelemetry SDK environment)."""
    variable = "OTEL_METRIC_EXPORT_INTERVAL"
    text = environ.get(variable, "").strip()
    if not text or document.has("agent.interval"):
        return agent, ""
    if not re.fullmatch(r"[0-9]{1,9}", text) or not 100 <= int(text) <= 86_400_000:
        raise ConfigError(f"{variable}={text!r}: must be milliseconds, 100 to 86400000")
    return msgspec.structs.replace(agent, interval=int(text) / 1000), variable
