"""``cgotel explain``: why did it restart, in words, on one screen."""

from __future__ import annotations

import sys

import click

from cgotel.cli.common import assembled
from cgotel.cli.kept import SINCE, kept, say, stamp
from cgotel.outputs.text import visible
from cgotel.restarts.story import story


@click.command()
@click.argument("what", required=False)
@click.option("--since", type=SINCE, default="7d", show_default=True, help="How far back: 30m, 2h, 7d.")
@click.option("--all", "everything", is_flag=True, help="Every end of it, and not only the last.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line, with all evidence.")
@click.pass_obj
def command(config_path: str | None, what: str | None, since: float, everything: bool, as_json: bool) -> None:
    """Say why WHAT ended last: a name, a unit, a path, or the beginning of a container's id.

    Without WHAT: whatever ended last.
    """
    found = kept(assembled(config_path), what, since, None if everything else 1)
    if not found:
        of = f" of {visible(what)}" if what else ""
        click.echo(f"cgotel: no end{of} was seen; `cgotel incidents` lists what was", err=True)
        sys.exit(1)
    for number, incident in enumerate(found):
        if as_json:
            say(incident)
            continue
        if number:
            click.echo()
        for line in story(incident.case, incident.verdict, stamp):
            click.echo(visible(line))
