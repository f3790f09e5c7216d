"""What the lab needs from the machine it runs on, and one clear line where that is missing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
UV = (sys.executable, "-m", "uv", "--quiet")

_PACKAGE_OF = {
    "mke2fs": "e2fsprogs",
    "mmdebstrap": "mmdebstrap",
    "qemu-system-x86_64": "qemu-system-x86",
}


class LabError(Exception):
    """The lab cannot do what was asked; the first line says why."""


def tool(name: str) -> str:
    """The path of a program, or a `LabError` that names the package to install."""
    if found := shutil.which(name, path=os.environ.get("PATH", os.defpath) + ":/usr/sbin"):
        return found
    package = _PACKAGE_OF.get(name, "the package that has it")
    raise LabError(f"the lab needs {name}: apt-get install {package} (tests/lab/packages.txt has all)")


def run(program: str, *arguments: str | Path, cwd: Path = ROOT, limit_s: float = 300) -> str:
    """Run a program to its end and return what it printed; anything but success is a `LabError`."""
    command = [tool(program), *map(str, arguments)]
    try:
        done = subprocess.run(command, cwd=cwd, timeout=limit_s, capture_output=True, text=True, check=True)
    except subprocess.TimeoutExpired as error:
        raise LabError(f"{program} took longer than {limit_s:.0f} s: {' '.join(command)}") from error
    except subprocess.CalledProcessError as error:
        raise LabError(
            f"{program} failed with status {error.returncode}: {' '.join(command)}\n"
            + "\n".join(error.stderr.splitlines()[-20:])
        ) from error
    return done.stdout


def need_root(purpose: str) -> None:
    """A root file system holds device nodes and files of many owners: only root can make one."""
    if os.geteuid() != 0:
        raise LabError(f"the lab needs root {purpose}: run `sudo {sys.executable} -m tests.lab build`")
