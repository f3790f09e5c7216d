"""``cgotel classify``: judge cases from a file, as the agent would have."""

from __future__ import annotations

import sys
from typing import IO

import click
import msgspec

from cgotel.cli.common import assembled, tell
from cgotel.cli.kept import say, stamp
from cgotel.outputs.text import visible
from cgotel.restarts.case import Case, decode
from cgotel.restarts.classify import classify
from cgotel.restarts.rule import Rule
from cgotel.restarts.story import story
from cgotel.store import Incident

BAD_INPUT_STATUS = 2
_NO_CASE = (msgspec.DecodeError, RecursionError)


@click.command()
@click.argument("file", type=click.File("rb"))
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@click.pass_obj
def command(config_path: str | None, file: IO[bytes], as_json: bool) -> None:
    """Judge the cases of FILE (- for standard input): one JSON object, or one a line.

    What `cgotel incidents --json` printed can be judged again: by newer rules, or with evidence added.
    """
    rules = assembled(config_path).registry.rules
    for number, case in enumerate(_cases(getattr(file, "name", "<stdin>"), file.read())):
        verdict = classify(case, rules, _failed)
        if as_json:
            say(Incident(case, verdict))
            continue
        if number:
            click.echo()
        for line in story(case, verdict, stamp):
            click.echo(visible(line))


def _cases(name: str, content: bytes) -> list[Case]:
    try:
        return [_case(content)]
    except _NO_CASE as whole:
        lines = [(number, line) for number, line in enumerate(content.split(b"\n"), 1) if line.strip()]
        if len(lines) < 2 or not lines[0][1].rstrip().endswith(b"}"):
            _refuse(f"{name}: {whole}")
    cases = []
    for number, line in lines:
        try:
            cases.append(_case(line))
        except _NO_CASE as error:
            _refuse(f"{name}:{number}: {error}")
    return cases


def _case(content: bytes) -> Case:
    """A case, bare or as `cgotel incidents --json` wraps it."""
    found = msgspec.json.decode(content)
    return (
        decode(msgspec.json.encode(found["case"]))
        if isinstance(found, dict) and "case" in found
        else decode(content)
    )


def _failed(rule: Rule, error: BaseException) -> None:
    tell(f"rule {rule.name}: {type(error).__name__}: {error}: passed over")


def _refuse(message: str) -> None:
    tell(message)
    sys.exit(BAD_INPUT_STATUS)
