"""For tests of collectors, ours and plugin authors': a kernel's tree of files, and one sweep of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

from cgotel.contract import Collector, Tick
from cgotel.model import Reading

Tree: TypeAlias = Mapping[str, "str | bytes | Tree"]
"""Names of files with their content, and names of directories with what is in them."""


def tree(content: Tree, *, into: Path) -> Path:
    """Write files and directories below ``into``, which is made where it is missing; return it.

    >>> mount = tree({"memory.max": "max\\n", "web.service": {"cpu.stat": "usage_usec 1\\n"}}, into=tmp_path)
    """
    into.mkdir(parents=True, exist_ok=True)
    for name, inside in content.items():
        if isinstance(inside, Mapping):
            tree(inside, into=into / name)
        else:
            (into / name).write_bytes(inside.encode() if isinstance(inside, str) else inside)
    return into


def sweep(collector: Collector, tick: Tick | None = None) -> list[Reading]:
    """Start a collector, ask it once, at ``tick`` (else at second 0 of both clocks), and close it.

    Raises what the collector raises, `Unavailable` among it: in an agent that would cost this
    collector's readings only.
    """
    try:
        collector.start()
        return list(collector.collect(tick or Tick(0, 0)))
    finally:
        collector.close()
