"""``cgotel config``: check the configuration, or show what is in force and where it came from."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import click

from cgotel.cli.common import assembled, config_errors
from cgotel.cli.writing import write_text
from cgotel.config import Configuration
from cgotel.outputs.text import visible

_PREFIXES = ("OTEL_", "HOST_", "CGOTEL_")
_HIDDEN = "***"


@click.group()
def command() -> None:
    """Check the configuration, or show what is in force."""


@command.command()
@click.pass_obj
def check(config_path: str | None) -> None:
    """Say whether the configuration can be used; exit status 2 if not."""
    assembly = assembled(config_path)
    document = assembly.configuration.document
    with config_errors():
        for output in assembly.outputs():
            output.check()
    write_text(f"{visible(document.path or 'no configuration file')}: ok\n")


@command.command()
@click.pass_obj
def show(config_path: str | None) -> None:
    """Print every effective value as TOML, each with where it came from.

    After the tables, the variables of the environment that have a say; secrets as ***.
    """
    assembly = assembled(config_path)
    lines = [*_values(assembly.configuration), *_variables(assembly.environ)]
    write_text("".join(f"{line}\n" for line in lines))


def _values(configuration: Configuration) -> Iterator[str]:
    table = None
    for key, value, origin in configuration.origins():
        name, _, last = key.rpartition(".")
        if name != table:
            yield from ([] if table is None else [""])
            yield f"[{name}]"
            table = name
        text = f"{last} = {_toml(value)}" if value is not None else f"# {last} is not set"
        yield f"{text}  # {visible(origin)}"


def _variables(environ: Mapping[str, str]) -> Iterator[str]:
    """What is set, one comment each; an empty variable is an unset one (OpenTelemetry specification)."""
    found = {name: value for name, value in sorted(environ.items()) if name.startswith(_PREFIXES) and value}
    if found:
        yield ""
    for name, value in found.items():
        secret = "HEADERS" in name or "@" in value
        yield f"# from the environment: {visible(name)}={_HIDDEN if secret else visible(value)}"


def _toml(value: Any) -> str:
    if isinstance(value, str):
        return "".join(c if c.isprintable() else _escape(c) for c in json.dumps(value, ensure_ascii=False))
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_toml(key)} = {_toml(item)}' for key, item in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return repr(value).lower() if isinstance(value, bool) else repr(value)


def _escape(character: str) -> str:
    return f"\\U{ord(character):08x}"
