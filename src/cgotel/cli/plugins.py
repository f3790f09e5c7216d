"""``cgotel plugins``: what is registered, from where, what it offers, what failed."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

import click

from cgotel import config, plugins
from cgotel.cli.common import config_errors, tell
from cgotel.cli.writing import FAILURE_STATUS, write, write_text
from cgotel.config import PluginSettings
from cgotel.outputs.json_document import encoded
from cgotel.outputs.pipe import claim_standard_output
from cgotel.outputs.text import columns, left, visible
from cgotel.plugins import Plugin

_TITLES = ("plugin", "from", "offers", "fault")


@click.command()
@click.option("--format", "form", type=click.Choice(("table", "json")), default="table", show_default=True)
@click.pass_obj
def command(config_path: str | None, form: str) -> None:
    """List every plugin that was found. Exit status 1 if one failed.

    Reads nothing of the configuration but [plugins], so that it works when a plugin's table does not.
    """
    claimed = claim_standard_output() if form == "json" else None
    with config_errors():
        disabled = config.read(config_path).table("plugins", PluginSettings).disabled
    registry = plugins.load(disabled)
    found = registry.plugins
    if registry.unknown:
        tell(registry.misnamed())
    if form == "json":
        write(_json(found), claimed=claimed)
    else:
        write_text(_table(found))
    if any(plugin.failed for plugin in found):
        sys.exit(FAILURE_STATUS)


def _json(found: Iterable[Plugin]) -> bytes:
    listed = [
        {"name": p.name, "origin": p.origin, "offers": p.offers, "fault": p.fault or None} for p in found
    ]
    return encoded({"plugins": listed})


def _table(found: Iterable[Plugin]) -> str:
    rows = [tuple(visible(text) for text in (p.name, p.origin, _brief(p.offers), p.fault)) for p in found]
    return "".join(f"{line}\n" for line in _aligned([_TITLES, *rows]))


def _aligned(rows: Sequence[Sequence[str]]) -> Iterable[str]:
    widths = [max(map(columns, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(left(text, width) for text, width in zip(row, widths, strict=True)).rstrip()


def _brief(offers: list[str]) -> str:
    """What a plugin offers; rules, of which there may be dozens, by their number."""
    rules = [offer for offer in offers if offer.startswith("rule ")]
    named = [offer for offer in offers if offer not in rules]
    return ", ".join([*named, *([f"{len(rules)} rules"] if rules else [])]) or "-"
