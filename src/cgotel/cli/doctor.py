"""``cgotel doctor``: what can be read and what not, why, and what to do."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence

import click

from cgotel.cli.common import assembled, log_to_stderr
from cgotel.cli.writing import FAILURE_STATUS, write, write_text
from cgotel.doctor import Finding, examine, report
from cgotel.doctor.gather import gather
from cgotel.outputs import screen
from cgotel.outputs.pipe import claim_standard_output

_WIDTH, _NARROWEST = 100, 40


@click.command()
@click.option("--format", "form", type=click.Choice(("text", "json")), default="text", show_default=True)
@click.pass_obj
def command(config_path: str | None, form: str) -> None:
    """Say what can be read here and what not, why, and what to do about it.

    Exit status 1 if something that matters is lost, 0 if nothing is.
    """
    log_to_stderr(verbose=False)
    logging.getLogger("cgotel.watching").setLevel(logging.WARNING)  # what it says is among the findings
    claimed = claim_standard_output() if form == "json" else None
    findings = examine(gather(assembled(config_path)))
    if form == "json":
        host = os.uname()
        write(report.json(findings, {"name": host.nodename, "kernel": host.release}), claimed=claimed)
    else:
        write_text(_text(findings))
    if report.is_lost(findings):
        sys.exit(FAILURE_STATUS)


def _text(findings: Sequence[Finding]) -> str:
    on_terminal = sys.stdout.isatty()
    width = screen.size(sys.stdout)[0] if on_terminal else _WIDTH
    paint = screen.paint if on_terminal and screen.coloured() else screen.plain
    return report.text(findings, max(width, _NARROWEST), paint)
