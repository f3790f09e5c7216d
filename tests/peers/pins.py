"""What `versions.toml` pins, and where what is built from it is kept."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.lab import cache
from tests.lab.host import ROOT

__all__ = ["PINS", "ROOT", "PeerError", "cached"]

PINS: dict[str, Any] = tomllib.loads(Path(__file__).with_name("versions.toml").read_text("utf-8"))


class PeerError(Exception):
    """A peer could not be had; the message says which and why."""


def cached(name: str, pins: object, build: Callable[[Path], None]) -> Path:
    """A folder made once by ``build(folder)``, named by the hash of the pins that it is made from.

    It lies in ``.cache/peers`` of the repository, or in ``peers`` below ``CGOTEL_CACHE``.
    """

    def make(folder: Path) -> None:
        folder.mkdir()
        build(folder)

    return cache.entry(name, cache.digest(json.dumps(pins, sort_keys=True)), make, part="peers")
