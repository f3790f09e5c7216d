"""``cgotel agent``: sweep until told to stop."""

from __future__ import annotations

import signal
import sys
import threading

import click

from cgotel.agent import Agent
from cgotel.assemble import Assembly
from cgotel.cli.common import assembled, config_errors, log_to_stderr
from cgotel.contract import Output, Unavailable
from cgotel.sweeper import Sweeper

UNAVAILABLE_STATUS = 1


@click.command()
@click.option("--interval", type=click.FloatRange(0.1, 86400), help="Seconds between sweeps.")
@click.option("--once", is_flag=True, help="One sweep, then stop.")
@click.option("-v", "--verbose", is_flag=True, help="Tell more on standard error.")
@click.pass_obj
def command(config_path: str | None, interval: float | None, once: bool, verbose: bool) -> None:
    """Sweep and export: over OTLP when an endpoint is configured, else as a live summary."""
    log_to_stderr(verbose)
    assembly = assembled(config_path)
    settings = assembly.configuration.agent
    outputs = _started(assembly)
    sweeper = Sweeper(assembly.collectors(), settings.max_series)
    agent = Agent(sweeper, outputs, interval or settings.interval)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    if once:
        agent.sweep()
        agent.close()
    else:
        agent.run(stop)


def _started(assembly: Assembly) -> list[Output]:
    with config_errors():
        outputs = assembly.outputs()
        try:
            for output in outputs:
                output.start()
        except Unavailable as unavailable:
            status = unavailable.status
            click.echo(f"cgotel: output {status.name}: {status.reason}. {status.remedy}", err=True)
            sys.exit(UNAVAILABLE_STATUS)
    return outputs
