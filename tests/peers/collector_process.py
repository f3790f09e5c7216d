"""A running Collector on loopback, which writes what it receives into files."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

from tests.peers import received
from tests.peers.received import Point, Record, RequestFile
from tests.peers.waiting import eventually

_TIMEOUT_S = 20.0
NO_SETTINGS: Mapping[str, Any] = MappingProxyType({})

_READY = "Everything is ready"


class Collector:
    """Starts with the constructor's ``with`` block; may be stopped and started again in between.

    The first start takes free ports, later ones take the same again, so that a client need not know.
    ``http`` are further settings of the OTLP receiver's HTTP server.
    """

    def __init__(self, executable: Path, folder: Path, http: Mapping[str, Any] = NO_SETTINGS) -> None:
        self._executable = executable
        self._folder = folder
        self._log = folder / "collector.log"
        self._http = http
        self._addresses = {"grpc": "127.0.0.1:0", "http": "127.0.0.1:0"}
        self._metrics = RequestFile(folder / "metrics.jsonl")
        self._logs = RequestFile(folder / "logs.jsonl")
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def http_endpoint(self) -> str:
        """The base URL of OTLP over HTTP."""
        return f"http://{self._addresses['http']}"

    @property
    def grpc_endpoint(self) -> str:
        """The URL of OTLP over gRPC."""
        return f"http://{self._addresses['grpc']}"

    @property
    def log(self) -> str:
        """What the process last started has said."""
        return self._log.read_text()

    def start(self) -> None:
        """Start the process and wait until it receives."""
        configuration = self._folder / "collector.json"  # YAML holds JSON
        configuration.write_text(json.dumps(self._configuration(), indent=2))
        with open(self._log, "wb") as log:
            self._process = subprocess.Popen(
                [self._executable, "--config", configuration],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        eventually(self._is_ready, _TIMEOUT_S, "the Collector is ready")
        self._addresses = {
            protocol: self._address(f"Starting {protocol.upper()} server") for protocol in self._addresses
        }

    def stop(self) -> int:
        """SIGTERM: it hands on what it holds and ends; returns its exit status."""
        return self._end(signal.SIGTERM)

    def hang(self) -> None:
        """SIGSTOP: connections are still accepted, by the kernel, and nothing is answered."""
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """SIGCONT, after `hang`."""
        self._signal(signal.SIGCONT)

    def kill(self) -> None:
        """SIGKILL, where it still runs."""
        self._end(signal.SIGKILL)

    def metrics(
        self, until: Callable[[list[Point]], object] = bool, timeout_s: float = _TIMEOUT_S
    ) -> list[Point]:
        """All points received so far, once ``until`` says that they are enough (some, by default)."""
        return self._received(self._metrics, received.points, until, timeout_s)

    def logs(
        self, until: Callable[[list[Record]], object] = bool, timeout_s: float = _TIMEOUT_S
    ) -> list[Record]:
        """All log records received so far, once ``until`` says that they are enough."""
        return self._received(self._logs, received.records, until, timeout_s)

    def _received(self, file: RequestFile, read: Any, until: Any, timeout_s: float) -> list[Any]:
        def enough() -> list[Any] | None:
            found = list(read(file.requests()))
            return found if until(found) else None

        return eventually(enough, timeout_s, "what was sent arrives at the Collector")

    def _is_ready(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, f"the Collector ended at once:\n{self.log}"
        return any(entry["msg"].startswith(_READY) for entry in self._entries())

    def _address(self, message: str) -> str:
        return next(str(entry["endpoint"]) for entry in self._entries() if entry["msg"] == message)

    def _entries(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.splitlines(keepends=True) if line.endswith("}\n")]

    def _end(self, number: signal.Signals) -> int:
        assert self._process is not None
        if self._process.poll() is None:
            self._signal(number)
        return self._process.wait(_TIMEOUT_S)

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def _configuration(self) -> dict[str, Any]:
        protocols = {
            "grpc": {"endpoint": self._addresses["grpc"]},
            "http": {"endpoint": self._addresses["http"], **self._http},
        }
        file = {"append": True, "flush_interval": "20ms"}
        pipeline = {"receivers": ["otlp"], "processors": ["memory_limiter", "batch"]}
        return {
            "receivers": {"otlp": {"protocols": protocols}},
            "processors": {
                "memory_limiter": {"check_interval": "1s", "limit_mib": 512},
                "batch": {"timeout": "20ms"},
            },
            "exporters": {
                "debug": {},
                "file/metrics": file | {"path": str(self._folder / "metrics.jsonl")},
                "file/logs": file | {"path": str(self._folder / "logs.jsonl")},
            },
            "service": {
                "telemetry": {"logs": {"encoding": "json"}, "metrics": {"level": "none"}},
                "pipelines": {
                    kind: pipeline | {"exporters": ["debug", f"file/{kind}"]} for kind in ("metrics", "logs")
                },
            },
        }
