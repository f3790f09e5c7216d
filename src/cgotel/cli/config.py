"""``cgotel config``: check the configuration, or show what is in force and where it came from."""

from __future__ import annotations

import json
from typing import Any

import click

from cgotel.cli.common import assembled, config_errors


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
    click.echo(f"{document.path or 'no configuration file'}: ok")


@command.command()
@click.pass_obj
def show(config_path: str | None) -> None:
    """Print every effective value as TOML, each with where it came from."""
    table = None
    for key, value, origin in assembled(config_path).configuration.origins():
        name, _, last = key.rpartition(".")
        if name != table:
            click.echo(f"{'' if table is None else chr(10)}[{name}]")
            table = name
        text = f"{last} = {_toml(value)}" if value is not None else f"# {last} is not set"
        click.echo(f"{text}  # {origin}")


def _toml(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
