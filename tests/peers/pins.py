"""What `versions.toml` pins, and where what is built from it is kept."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import tempfile
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PINS: dict[str, Any] = tomllib.loads(Path(__file__).with_name("versions.toml").read_text("utf-8"))


class PeerError(Exception):
    """A peer could not be had; the message says which and why."""


def cached(name: str, pins: object, build: Callable[[Path], None]) -> Path:
    """A folder made once by ``build(folder)``, named by the hash of the pins that it is made from.

    It lies in ``.cache/peers`` of the repository, or in ``peers`` below ``CGOTEL_CACHE``. It is built
    aside and moved into place when complete, so a folder that exists is whole.
    """
    home = Path(os.environ.get("CGOTEL_CACHE") or ROOT / ".cache").absolute() / "peers"
    home.mkdir(parents=True, exist_ok=True)
    key = hashlib.sha256(json.dumps(pins, sort_keys=True).encode()).hexdigest()[:12]
    wanted = home / f"{name}-{key}"
    with open(home / f".{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not wanted.exists():
            with tempfile.TemporaryDirectory(prefix=f".{name}.", dir=home) as scratch:
                made = Path(scratch, name)
                made.mkdir()
                build(made)
                made.rename(wanted)
    return wanted
