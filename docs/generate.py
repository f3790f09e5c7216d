"""Writes docs/metrics.md from the instruments themselves: `python docs/generate.py`.

`--check` writes nothing and fails when the file is stale.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from cgotel import inquiry, plugins, self_metrics
from cgotel.contract import Collector
from cgotel.kernel.roots import Roots
from cgotel.model import Instrument

TARGET = Path(__file__).parent / "metrics.md"

INTRODUCTION = """\
# Metrics

Made by `python docs/generate.py` from the instruments themselves; do not edit.

Names follow the OpenTelemetry semantic conventions 1.44 where they hold one (`container.*`,
`k8s.pod.*`, `system.*`, `process.*`); cgroup facts without a convention are `cgroup.*`, host facts
`system.<area>.linux.*`. A cgroup that is a container keeps the `container.*` names, a Kubernetes pod
the `k8s.pod.*` ones, everything else has the same metric as `cgroup.*`. Counters and updowncounters
are cumulative and start when their entity began. What was not measured has no point, never a 0; a
limit of `max` has none either.

`cgroup.limit.owner` is `self`, `host`, or the path of the ancestor whose limit is in force.
"""


def document() -> str:
    """The whole page."""
    parts = [INTRODUCTION]
    registry = plugins.load(environ={plugins.RESCUE: "none"})
    for name, kind in registry.collectors.items():
        parts += [
            f"## Collector `{name}`",
            f"{_needs(kind)}",
            _table(kind(kind.Config(), Roots()).instruments),
        ]
    outputs = [i for kind in registry.outputs.values() for i in kind(kind.Config()).instruments]
    parts += ["## What ended, and why", _table(tuple(inquiry.INSTRUMENTS.values()))]
    parts += ["## The agent itself", _table((*self_metrics.INSTRUMENTS, *outputs))]
    return "\n\n".join(parts) + "\n"


def _needs(kind: type[Collector]) -> str:
    first = (kind.__doc__ or "").strip().splitlines()[0]
    return f"{first} Needs: {'; '.join(kind.needs) or 'nothing'}."


def _table(instruments: tuple[Instrument, ...]) -> str:
    head = "| metric | kind | unit | what it is |\n|---|---|---|---|\n"
    return head + "\n".join(_rows(instruments))


def _rows(instruments: tuple[Instrument, ...]) -> Iterator[str]:
    for i in sorted(instruments, key=lambda i: i.name):
        yield f"| `{i.name}` | {i.kind} | {i.unit} | {i.description} |"


if __name__ == "__main__":
    page = document()
    if "--check" in sys.argv:
        if TARGET.read_text(encoding="utf-8") != page:
            sys.exit(f"{TARGET.name} is stale: run `python docs/generate.py`")
    else:
        TARGET.write_text(page, encoding="utf-8")
