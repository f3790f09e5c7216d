"""The disk that changes with every run: cgotel as installed, the guest tests, what to run."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from tests.lab.host import ROOT, UV, run
from tests.lab.kernels import Kernel

PROJECT = Path("/project")  # where the guest mounts this disk
_LAB = "tests/lab"


def disk(kernel: Kernel, selection: Iterable[str], to: Path) -> None:
    """Write an ext4 image to ``to`` with the working tree as it is now, in about a second.

    ``selection`` holds the node ids of the tests to run, in their order.
    """
    tree = to.with_name("project")
    _install(kernel, tree / "site")
    shutil.copytree(ROOT / _LAB, tree / _LAB, ignore=shutil.ignore_patterns("__pycache__", "overlay"))
    shutil.copy(ROOT / "pyproject.toml", tree)
    (tree / "selection").write_text("\n".join(selection))
    (tree / "environment").write_text(
        f"CGOTEL_LAB_KERNELS={kernel.name}\n"
        "PATH=/project/site/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin\n"
        "PYTHONDONTWRITEBYTECODE=1\n"
        "PYTHONPATH=/project/site\n"
    )
    run("mke2fs", "-q", "-t", "ext4", "-d", tree, to, "64M")


def _install(kernel: Kernel, site: Path) -> None:
    """Build the wheel and install it, so that entry points and metadata are there as for a user."""
    run(
        *(*UV, "pip", "install", "--target", site, "--no-deps"),
        *("--python-version", kernel.python, ROOT),
    )
    for script in (site / "bin").iterdir():
        _, _, body = script.read_text().partition("\n")
        script.write_text(f"#!/usr/bin/python3\n{body}")
