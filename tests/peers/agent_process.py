"""``cgotel agent`` as a process of its own, as a service manager runs it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from tests.peers.collector_process import Collector
from tests.peers.kernel_tree import UNWATCHED
from tests.peers.received import Point
from tests.peers.waiting import eventually

INTERVAL_MS = 200
PROTOCOLS = ("http/protobuf", "grpc")

_LIMIT_S = 30.0
_OTHERS = ("OTEL_", "HOST_")


def otlp_to(collector: Collector, protocol: str) -> dict[str, str]:
    """The variables that send the agent's data to a Collector, a sweep every `INTERVAL_MS`."""
    endpoint = collector.grpc_endpoint if protocol == "grpc" else collector.http_endpoint
    return {
        "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint,
        "OTEL_EXPORTER_OTLP_PROTOCOL": protocol,
        "OTEL_METRIC_EXPORT_INTERVAL": str(INTERVAL_MS),
    }


class Agent:
    """Runs within its ``with`` block; sees no OTEL_* and HOST_* variables but those given."""

    def __init__(self, folder: Path, environment: Mapping[str, str], *arguments: str) -> None:
        folder.mkdir(exist_ok=True)
        self._log = folder / "agent.log"
        self._config = folder / "cgotel.toml"
        if not self._config.exists():  # who watches sees this machine, and not a tree of files
            self._config.write_text(UNWATCHED if "HOST_PROC" in environment else "")
        self._arguments = arguments
        clean = {name: value for name, value in os.environ.items() if not name.startswith(_OTHERS)}
        self._environment = {**clean, **environment}

    def __enter__(self) -> Self:
        with open(self._log, "wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "cgotel", "--config", self._config, "agent", *self._arguments],
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait(_LIMIT_S)
        print(self.log)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def log(self) -> str:
        """What it has said so far."""
        return self._log.read_text()

    def says(self, text: str) -> None:
        """Wait until it has said this."""
        eventually(lambda: text in self.log, _LIMIT_S, f"the agent says {text!r}")

    def terminate(self) -> None:
        """Send SIGTERM."""
        self._process.send_signal(signal.SIGTERM)

    def wait(self, limit_s: float = _LIMIT_S) -> int:
        """Its exit status, once it has ended."""
        return self._process.wait(limit_s)


def one_sweep(collector: Collector, folder: Path, environment: Mapping[str, str]) -> list[Point]:
    """Everything that the Collector received of one sweep; it is stopped afterwards."""
    with Agent(folder, environment, "--once") as agent:
        assert agent.wait() == 0
        assert "ERROR" not in agent.log
    assert collector.stop() == 0
    return collector.metrics()
