"""The disk that changes with every run: cgotel as installed, the guest tests, what to run."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from tests.lab.host import ROOT, UV, LabError, run
from tests.lab.kernels import Kernel
from tests.peers import telegraf
from tests.peers.pins import PeerError

PROJECT = Path("/project")  # where the guest mounts this disk
TELEGRAF = PROJECT / "telegraf"

_LAB = "tests/lab"
_PARTS = (_LAB, "benchmarks", "collectd", "examples", "tests/peers", "tests/unit/outputs")
_WITH_TELEGRAF = ("tests/lab/guest/test_beside_native.py", "tests/lab/guest/side_by_side.py")


def disk(kernel: Kernel, selection: Iterable[str], to: Path) -> None:
    """Write an ext4 image to ``to`` with the working tree as it is now, in about a second.

    ``selection`` holds the node ids of the tests to run, in their order.
    """
    tree = to.with_name("project")
    chosen = list(selection)
    _install(kernel, tree / "site")
    for part in _PARTS:
        shutil.copytree(ROOT / part, tree / part, ignore=shutil.ignore_patterns("__pycache__", "overlay"))
    if any(test.startswith(_WITH_TELEGRAF) for test in chosen):
        shutil.copy(_telegraf(), tree / TELEGRAF.name)
    shutil.copy(ROOT / "pyproject.toml", tree)
    (tree / "selection").write_text("\n".join(chosen))
    (tree / "environment").write_text(
        f"CGOTEL_LAB_KERNELS={kernel.name}\n"
        "PATH=/project/site/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin\n"
        "PYTHONDONTWRITEBYTECODE=1\n"
        "PYTHONPATH=/project/site\n"
    )
    run("mke2fs", "-q", "-t", "ext4", "-d", tree, to, "128M")


def _telegraf() -> Path:
    """The daemon's executable, built where it is not there yet: static, so it runs in any guest."""
    try:
        return telegraf.binary()
    except PeerError as error:
        raise LabError(f"the lab needs Telegraf: {error}") from error


def _install(kernel: Kernel, site: Path) -> None:
    """Build the wheel and install it, so that entry points and metadata are there as for a user."""
    run(
        *(*UV, "pip", "install", "--target", site, "--no-deps"),
        *("--python-version", kernel.python, ROOT),
    )
    for script in (site / "bin").iterdir():
        _, _, body = script.read_text().partition("\n")
        script.write_text(f"#!/usr/bin/python3\n{body}")
