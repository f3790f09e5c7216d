"""``cgotel agent``: sweep until told to stop."""

from __future__ import annotations

import sys

import click

from cgotel.agent import Agent
from cgotel.assemble import Assembly
from cgotel.cli.common import SECONDS, assembled, config_errors, log_to_stderr, tell
from cgotel.cli.ending import Ending
from cgotel.config import ConfigError
from cgotel.contract import Output, Unavailable
from cgotel.investigation import Investigation
from cgotel.sweeper import Sweeper

UNAVAILABLE_STATUS = 1
LOSS_STATUS = 1


@click.command()
@click.option("--interval", type=SECONDS, help="Seconds between sweeps.")
@click.option("--once", is_flag=True, help="One sweep, then stop.")
@click.option("-v", "--verbose", is_flag=True, help="Tell more on standard error.")
@click.pass_obj
def command(config_path: str | None, interval: float | None, once: bool, verbose: bool) -> None:
    """Sweep and export: over OTLP when an endpoint is configured, else as a live summary."""
    ending = Ending(tell)
    log_to_stderr(verbose)
    assembly = assembled(config_path)
    settings = assembly.configuration.agent
    outputs = _started(assembly)
    sweeper = Sweeper(assembly.collectors(), settings.max_series, ending.event)
    if once:
        agent = Agent(sweeper, outputs, interval or settings.interval)
        ending.busy_with = lambda: agent.busy_with
        agent.follow((None,))
        sys.exit(LOSS_STATUS if agent.faults else 0)
    investigation = Investigation(assembly, "agent", [output.name for output in outputs])
    agent = Agent(sweeper, outputs, interval or settings.interval, outbox=investigation.outbox)
    ending.busy_with = lambda: agent.busy_with
    agent.accompany(investigation.begin(agent.emit))
    try:
        agent.run(ending.event)
    finally:
        investigation.close()


def _started(assembly: Assembly) -> list[Output]:
    with config_errors():
        outputs = assembly.outputs()
        try:
            for output in outputs:
                output.start()
        except Unavailable as unavailable:
            status = unavailable.status
            tell(f"output {status.name}: {status.reason}. {status.remedy}")
            sys.exit(UNAVAILABLE_STATUS)
        except ConfigError:
            raise
        except Exception as error:
            tell(f"output {output.name} cannot start: {type(error).__name__}: {error}")
            sys.exit(UNAVAILABLE_STATUS)
    return outputs
