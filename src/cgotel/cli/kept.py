"""What the commands about incidents share: the stores of this host, times, JSON."""

from __future__ import annotations

import json
import re
import sqlite3
import sys
import time
from contextlib import closing
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import click
import msgspec

from cgotel.assemble import Assembly
from cgotel.cli.common import tell
from cgotel.store import Incident, StoreUnavailable, state_directory
from cgotel.store.database import read_only
from cgotel.store.incidents import find

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
UNREADABLE_STATUS = 1


class Since(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """A length of time into the past, in seconds: ``90s``, ``30m``, ``2h``, ``7d``."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        found = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)([smhd])", str(value))
        if found is None:
            self.fail(f"{value!r} is no length of time: 90s, 30m, 2h or 7d", param, ctx)
        return float(found[1]) * _UNITS[found[2]]


SINCE = Since()


def kept(
    assembly: Assembly, what: str | None, since_s: float, most: int | None = None, cause: str | None = None
) -> list[Incident]:
    """The incidents in every store of this host, the newest first, each once; ``most`` at most."""
    if what is not None and assembly.roots.cgroup is not None:
        what = what.removeprefix(assembly.roots.cgroup)
    since_ns = max(0, time.time_ns() - int(since_s * 1e9))
    if cause is not None:
        cause = cause.encode("utf-8", "backslashreplace").decode()
    found: dict[str, Incident] = {}
    for path in _stores(assembly):
        try:
            with closing(read_only(path)) as connection:
                for incident in islice(find(connection, what, since_ns, cause, _unreadable), most):
                    found.setdefault(incident.case.exit.uid, incident)
        except StoreUnavailable as error:
            tell(f"{error}: left out")
        except sqlite3.Error as error:
            tell(f"{path}: {error}: the rest of it is left out")
    return sorted(found.values(), key=lambda incident: -incident.case.exit.ended_ns)[:most]


def _unreadable(uid: str, error: msgspec.MsgspecError) -> None:
    tell(f"{uid} is not what this version keeps: {error}: left out")


def _stores(assembly: Assembly) -> list[Path]:
    directory = state_directory(assembly.configuration.agent.state_directory, assembly.environ)
    try:
        stores = sorted(path for path in directory.iterdir() if path.name.endswith(".db"))
    except OSError as error:
        tell(f"{directory}: {error.strerror}: an agent that runs keeps its verdicts there")
        sys.exit(UNREADABLE_STATUS)
    if not stores:
        tell(f"{directory}: no agent has kept anything there yet")
        sys.exit(UNREADABLE_STATUS)
    return stores


def stamp(time_ns: int) -> str:
    """A time as people read it: local, to the second, with its offset; as it is where no calendar has it."""
    try:
        return datetime.fromtimestamp(time_ns / 1e9, UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S%z")
    except (ValueError, OverflowError, OSError):
        return f"{time_ns} ns"


def say(incident: Incident) -> None:
    """One incident as one line of JSON, in ASCII: what a container said reaches no terminal."""
    click.echo(json.dumps(msgspec.to_builtins(incident._asdict())))
