"""The official OpenTelemetry Collector, built from its Go modules by its own builder.

``python -m tests.peers.collector`` builds it and prints where it is.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.peers import golang
from tests.peers.pins import PINS, PeerError, cached

_BUILD_LIMIT_S = 1200


def binary() -> Path:
    """The Collector's executable with the components that `versions.toml` names."""
    return cached("otelcol", PINS["collector"], _build) / "otelcol"


def _build(folder: Path) -> None:
    go = golang.go()
    sources = folder / "sources"
    manifest = folder / "builder.json"  # YAML holds JSON
    manifest.write_text(json.dumps(_manifest(go, sources), indent=2))
    builder = [go, "run", PINS["collector"]["builder"], "--config", manifest]
    golang.run(builder, cwd=folder, timeout_s=_BUILD_LIMIT_S)
    (sources / "otelcol").rename(folder / "otelcol")


def _manifest(go: Path, sources: Path) -> dict[str, object]:
    modules = PINS["collector"]["modules"]
    return {
        "dist": {"name": "otelcol", "output_path": str(sources), "go": str(go)},
        **{kind: [{"gomod": module} for module in wanted] for kind, wanted in modules.items()},
    }


if __name__ == "__main__":
    try:
        print(binary())
    except PeerError as error:
        sys.exit(f"peers: {error}")
