"""What every subcommand needs: the assembly, and errors as one line with the right exit status."""

from __future__ import annotations

import logging
import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import click

from cgotel.assemble import Assembly, assemble
from cgotel.config import ConfigError
from cgotel.outputs.text import visible

CONFIG_STATUS = 2


class Seconds(click.FloatRange):
    """A range of finite numbers: NaN is in every range of click's."""

    name = "seconds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        seconds: float = super().convert(value, param, ctx)
        if not math.isfinite(seconds):
            self.fail(f"{value} is no number of seconds", param, ctx)
        return seconds


SECONDS = Seconds(0.1, 86400)


@contextmanager
def config_errors() -> Iterator[None]:
    """A `ConfigError` becomes one line on standard error and exit status 2."""
    try:
        yield
    except ConfigError as error:
        tell(str(error))
        sys.exit(CONFIG_STATUS)


def assembled(config_path: str | None) -> Assembly:
    """Everything that the configuration asks for; faulty plugins are told on standard error."""
    with config_errors():
        assembly = assemble(config_path)
    for fault in assembly.registry.faults():
        tell(fault)
    return assembly


def tell(message: str) -> None:
    """One line on standard error, whatever the message holds; nowhere if nothing can be written there."""
    with suppress(OSError):
        click.echo(f"cgotel: {visible(message)}", err=True)


def log_to_stderr(verbose: bool) -> None:
    """Log lines on standard error, one line each whatever they hold."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_OneLine("cgotel: %(levelname)s: %(message)s"))
    logging.basicConfig(level=logging.DEBUG if verbose else logging.INFO, handlers=[handler])
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)


class _OneLine(logging.Formatter):
    """Names from containers are hostile text: control characters are shown, not sent."""

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        return text if record.exc_info else visible(text)
