"""``cgotel incidents``: what ended, when, and why, the newest first."""

from __future__ import annotations

import sys
from typing import get_args

import click

from cgotel.cli.common import assembled
from cgotel.cli.kept import SINCE, kept, say, stamp
from cgotel.outputs.text import clip, visible
from cgotel.restarts.story import duration
from cgotel.restarts.verdict import Cause


@click.command()
@click.argument("what", required=False)
@click.option("--since", type=SINCE, default="7d", show_default=True, help="How far back: 30m, 2h, 7d.")
@click.option(
    "--cause",
    type=click.Choice(get_args(Cause)),
    metavar="CAUSE",
    help="Only this cause (cgroup_oom, health_check, ...).",
)
@click.option("-n", "--most", type=click.IntRange(1), default=50, show_default=True, help="At most so many.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line, with all evidence.")
@click.pass_obj
def command(
    config_path: str | None, what: str | None, since: float, cause: str | None, most: int, as_json: bool
) -> None:
    """List what ended: of WHAT (a name, unit, path, or the beginning of an id), or everything."""
    assembly = assembled(config_path)
    found = kept(assembly, what, since, most, cause)
    if as_json:
        for incident in found:
            say(incident)
        return
    if not found:
        click.echo("nothing has ended that was seen", err=True)
        sys.exit(1)
    click.echo(f"{'ended':<24} {'after':>8}  {'what':<32} {'cause':<18} {'sure':<12} because")
    for case, verdict in found:
        began = case.exit.began_ns
        lived = duration((case.exit.ended_ns - began) / 1e9) if began is not None else "-"
        title = clip(visible(case.exit.workload.title), 32)
        click.echo(
            f"{stamp(case.exit.ended_ns):<24} {lived:>8}  {title:<32} {verdict.cause:<18} "
            f"{verdict.sureness:<12} {visible(verdict.because)}"
        )
