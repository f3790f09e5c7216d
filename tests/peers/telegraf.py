"""The official Telegraf with the few plugins that the tests use, built from its Go module.

``python -m tests.peers.telegraf`` builds it and prints where it is.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.peers import golang
from tests.peers.pins import PINS, PeerError, cached

_BUILD_LIMIT_S = 1800


def binary() -> Path:
    """Telegraf's executable with the plugins that `versions.toml` names."""
    return cached("telegraf", PINS["telegraf"], _build) / "telegraf"


def _build(folder: Path) -> None:
    pins = PINS["telegraf"]
    tags = ",".join(["custom", *pins["plugins"]])
    install = ["env", f"GOBIN={folder}", golang.go(), "install", "-ldflags=-s -w", "-tags", tags]
    golang.run([*install, pins["module"]], cwd=folder, timeout_s=_BUILD_LIMIT_S)


if __name__ == "__main__":
    try:
        print(binary())
    except PeerError as error:
        sys.exit(f"peers: {error}")
