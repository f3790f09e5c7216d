"""``cgotel telegraf``: the child that Telegraf's ``inputs.execd`` starts."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable

import click
import msgspec

from cgotel import __version__
from cgotel.agent import Agent
from cgotel.assemble import Assembly
from cgotel.cli.common import SECONDS, assembled
from cgotel.cli.telegraf_log import hang_up, log_to_telegraf
from cgotel.cli.triggers import Triggers
from cgotel.investigation import Investigation
from cgotel.outputs.influx import LINGER_S, InfluxConfig, InfluxOutput
from cgotel.outputs.pipe import claim_standard_output
from cgotel.sweeper import Sweeper

log = logging.getLogger(__name__)

_INTERVAL_SHARE = 0.5  # of the own interval, for a batch to be taken in


@click.command()
@click.option(
    "--interval",
    type=SECONDS,
    help='Seconds between batches of its own accord, for `signal = "none"`.',
)
@click.option("--once", is_flag=True, help="One batch, then stop.")
@click.option("-v", "--verbose", is_flag=True, help="Tell more on standard error.")
@click.pass_obj
def command(config_path: str | None, interval: float | None, once: bool, verbose: bool) -> None:
    """A batch of line protocol for Telegraf, whenever inputs.execd asks for one.

    A newline on standard input, SIGHUP, SIGUSR1 and SIGUSR2 each ask for a batch, whatever `signal`
    Telegraf has in its configuration. The end of standard input and SIGTERM end it.
    """
    triggers = () if once else Triggers(interval)
    descriptor = claim_standard_output()
    log_to_telegraf(verbose)
    assembly = assembled(config_path)
    settings = assembly.configuration.outputs[InfluxOutput.name]
    assert isinstance(settings, InfluxConfig)
    if interval is not None:
        shortened = min(settings.write_timeout, interval * _INTERVAL_SHARE)
        settings = msgspec.structs.replace(settings, write_timeout=shortened)
    output = InfluxOutput(settings, descriptor)
    output.start()
    _sweep(assembly, output, interval, triggers, once)
    hang_up()
    time.sleep(LINGER_S)


def _sweep(
    assembly: Assembly, output: InfluxOutput, interval: float | None, triggers: Iterable[object], once: bool
) -> None:
    settings = assembly.configuration.agent
    sweeper = Sweeper(assembly.collectors(), settings.max_series)
    log.info("cgotel %s: %s", __version__, _when(once, interval))
    if once:
        Agent(sweeper, [output], interval or settings.interval).follow((None,))
        return
    investigation = Investigation(assembly, "telegraf", [output.name])
    agent = Agent(sweeper, [output], interval or settings.interval, outbox=investigation.outbox)
    agent.accompany(investigation.begin(agent.emit))
    try:
        agent.follow(triggers)
    finally:
        investigation.close()


def _when(once: bool, interval: float | None) -> str:
    if once:
        return "one batch"
    own = "" if interval is None else f", and every {interval:g} s"
    return f"a batch for each line on standard input, SIGHUP, SIGUSR1 and SIGUSR2{own}"
