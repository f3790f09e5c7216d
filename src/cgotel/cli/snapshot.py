"""``cgotel snapshot``: everything that can be read, once."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import click

from cgotel.cli.common import Seconds, assembled, log_to_stderr
from cgotel.cli.writing import STANDARD_OUTPUT, fail, write, write_text
from cgotel.clock import now
from cgotel.contract import SourceStatus
from cgotel.model import Sweep
from cgotel.outputs.names import path_of
from cgotel.outputs.pipe import claim_standard_output
from cgotel.sweeper import Sweeper

FORMATS = ("table", "json", "prometheus")


class _Taken(NamedTuple):
    """What was read; ``only`` are the cgroups that were asked for, None for all."""

    sweep: Sweep
    before: Sweep | None
    sources: list[SourceStatus]
    only: frozenset[str] | None = None

    def asked_for(self) -> Sweep:
        """The sweep without what was not asked for."""
        if self.only is None:
            return self.sweep
        return replace(
            self.sweep, readings=[r for r in self.sweep.readings if path_of(r.entity) in self.only]
        )


def _named(_ctx: click.Context, _param: click.Parameter, output: str) -> str:
    if not output:
        raise click.BadParameter("it needs the name of a file.")
    return output


@click.command()
@click.argument("paths", metavar="[PATH]...", nargs=-1)
@click.option("--format", "form", type=click.Choice(FORMATS), default="table", show_default=True)
@click.option(
    "--output",
    metavar="FILE",
    default=STANDARD_OUTPUT,
    callback=_named,
    help="Replace this file in one step; - is standard output.",
)
@click.option(
    "--interval",
    type=Seconds(0.01, 3600),
    metavar="SECONDS",
    help="Sweep twice, so far apart, for what is a rate. Without it: one sweep, and totals.",
)
@click.pass_obj
def command(
    config_path: str | None, paths: Sequence[str], form: str, output: str, interval: float | None
) -> None:
    """Read everything once and print it; with PATHs, only these cgroups.

    A PATH begins at the cgroup root (/system.slice/ssh.service) or with its mount point.
    """
    log_to_stderr(verbose=False)
    claimed = None if form == "table" else claim_standard_output()
    assembly = assembled(config_path)
    taken = _take(Sweeper(assembly.collectors(), assembly.configuration.agent.max_series), interval)
    if not taken.sweep.readings:
        fail("nothing can be read here; cgotel doctor says why")
    if paths:
        taken = taken._replace(only=_existing(paths, taken, assembly.roots.cgroup))
    if form == "table":
        write_text(_table(taken, output), output)
    else:
        write({"json": _json, "prometheus": _prometheus}[form](taken), output, claimed)


def _take(sweeper: Sweeper, interval: float | None) -> _Taken:
    try:
        before = None
        if interval is not None:
            before = sweeper.sweep(now())
            time.sleep(interval)
        return _Taken(sweeper.sweep(now()), before, list(sweeper.sources()))
    finally:
        sweeper.close()


def _existing(paths: Sequence[str], taken: _Taken, mount: str | None) -> frozenset[str]:
    """The paths from the cgroup root; one that was not read ends the command."""
    found = {path_of(reading.entity) for reading in taken.sweep.readings}
    asked_for = frozenset(_from_root(path, mount) for path in paths)
    for path in sorted(asked_for - found):
        if mount is None:
            fail("no cgroup v2 hierarchy is mounted")
        fail(f"{path}: {_why_not_read(path, mount)}")
    return asked_for


def _why_not_read(path: str, mount: str) -> str:
    try:
        os.close(os.open(mount + path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
    except (FileNotFoundError, NotADirectoryError):
        return f"no such cgroup in {mount}"
    except OSError as error:
        return str(error.strerror)
    return "left out by [collectors.cgroup] or by [agent] max_series"


def _from_root(path: str, mount: str | None) -> str:
    if mount is not None and (path == mount or path.startswith(f"{mount}/")):
        path = path[len(mount) :]
    return os.fsencode(os.path.normpath(f"/{path.lstrip('/')}")).decode("utf-8", "backslashreplace")


def _table(taken: _Taken, output: str) -> str:
    from cgotel.losses import losses
    from cgotel.outputs import screen
    from cgotel.outputs.frame import frame
    from cgotel.outputs.summary import summarize

    on_terminal = output == STANDARD_OUTPUT and sys.stdout.isatty()
    width = screen.size(sys.stdout)[0] if on_terminal else None
    paint = screen.paint if on_terminal and screen.coloured() else screen.plain
    summary = summarize(taken.sweep, taken.before, taken.only)
    lines = frame(summary, summary.rows, losses(taken.sources), width, paint)
    return "".join(f"{line}\n" for line in lines)


def _json(taken: _Taken) -> bytes:
    from cgotel.outputs.json_document import document

    host = os.uname()
    return document(taken.asked_for(), taken.sources, {"name": host.nodename, "kernel": host.release})


def _prometheus(taken: _Taken) -> bytes:
    from cgotel.outputs.prometheus import render

    return render(taken.asked_for()).encode("utf-8", "backslashreplace")
