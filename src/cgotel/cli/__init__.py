"""The `cgotel` command: one file a subcommand, imported when it is called."""

from __future__ import annotations

import importlib
import signal
import sys
from typing import Any

if "telegraf" in sys.argv[1:]:
    # Telegraf may signal its child at any moment, and the default action is to end it. So they wait
    # until the command has a handler for them, from before everything that takes long to import.
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2))

import click

from cgotel import __version__
from cgotel.cli.streams import place_of, reopen_missing, settle

COMMANDS = (
    "agent",
    "classify",
    "collectd-config",
    "config",
    "doctor",
    "explain",
    "incidents",
    "plugins",
    "snapshot",
    "telegraf",
)

FAILURE_STATUS = 1
INTERRUPTED_STATUS = 128 + signal.SIGINT


class _Commands(click.Group):
    """Imports a subcommand's module at its first use, so that each command loads only its own."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module = importlib.import_module(f"cgotel.cli.{name.replace('-', '_')}")
        command: click.Command = module.command
        return command

    def main(self, *args: Any, **extra: Any) -> Any:
        """As click's; what the world does to the standard streams is no fault of the program."""
        reopen_missing()
        try:
            return super().main(*args, **extra)
        except OSError as error:
            from cgotel.cli.common import tell

            tell(f"{place_of(error)}: {error.strerror or error}")
            sys.exit(FAILURE_STATUS)
        finally:
            settle()

    def invoke(self, ctx: click.Context) -> Any:
        """As click's; somebody who interrupts knows that it is interrupted."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            sys.exit(INTERRUPTED_STATUS)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="cgotel")
@click.option(
    "--config",
    "config_path",
    metavar="FILE",
    envvar="CGOTEL_CONFIG",
    help="Configuration file, else CGOTEL_CONFIG, else /etc/cgotel/cgotel.toml if that exists.",
)
@click.pass_context
def main(ctx: click.Context, config_path: str | None) -> None:
    """What holds a Linux workload back: limits, pressure and throttling of every cgroup."""
    ctx.obj = config_path
