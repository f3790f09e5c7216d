"""The start of ``cgotel snapshot`` against a bare interpreter that imports what it needs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from rounds import alternate, spread, table
from trees import Tree

_IMPORT = re.compile(r"^import time: +(\d+) \| +\d+ \| +(\S+)$", re.MULTILINE)
_SHOWN = 12


def starting(tree: Tree, rounds: int) -> None:
    """Print the CPU time of a snapshot of a small tree, and where its imports' time goes."""
    environ = {**os.environ, "HOST_CGROUP": tree.mount, "PYTHONDONTWRITEBYTECODE": ""}
    snapshot = ("-m", "cgotel", "snapshot", "--format", "json")
    _Start("", snapshot, environ).sweep()  # writes what is compiled
    own_us = _imports(_Start("", snapshot, environ)) - _imports(_Start("", ("-c", "pass"), environ))
    needed = sorted(name for name in own_us if not name.startswith("cgotel"))
    taking_part = [
        _Start("python -c pass", ("-c", "pass"), environ),
        _Start("python, the imports it needs", ("-c", _importing(needed)), environ),
        _Start("cgotel --version", ("-m", "cgotel", "--version"), environ),
        _Start("cgotel snapshot", snapshot, environ),
    ]
    results = alternate(taking_part, rounds)
    lines = [[r.name, spread([s * 1e3 for s in r.seconds], 1), spread(r.ratios(results[1]))] for r in results]
    title = f"start, with {len(tree.cgroups)} cgroups to read"
    print(table(title, ("", "ms CPU", "to its imports"), lines))
    print(_by_package(own_us))


@dataclass(slots=True)
class _Start:
    name: str
    arguments: tuple[str, ...]
    environ: dict[str, str]

    def sweep(self) -> float:
        with subprocess.Popen(
            [sys.executable, *self.arguments], env=self.environ, stdout=subprocess.DEVNULL
        ) as process:
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            raise subprocess.CalledProcessError(process.returncode, self.arguments)
        return usage.ru_utime + usage.ru_stime


def _imports(start: _Start) -> Counter[str]:
    """Each module that is imported, with the microseconds it took by itself."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *start.arguments],
        env=start.environ,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=True,
    )
    return Counter({name: int(microseconds) for microseconds, name in _IMPORT.findall(done.stderr)})


def _importing(modules: Sequence[str]) -> str:
    """Python that imports them all; a name that is no module of its own came with its parent."""
    return (
        f"from contextlib import suppress\nfor name in {modules!r}:\n"
        "    with suppress(ImportError): __import__(name)\n"
    )


def _by_package(microseconds: Counter[str]) -> str:
    packages: Counter[str] = Counter()
    for name, spent in microseconds.items():
        packages[name.partition(".")[0]] += spent
    modules = Counter(name.partition(".")[0] for name in microseconds)
    lines = [[name, str(modules[name]), f"{us / 1e3:.1f}"] for name, us in packages.most_common(_SHOWN)]
    others = packages.most_common()[_SHOWN:]
    lines.append(
        ["others", str(sum(modules[name] for name, _ in others)), f"{sum(us for _, us in others) / 1e3:.1f}"]
    )
    return table("imports of cgotel snapshot (-X importtime)", ("", "modules", "ms"), lines)
