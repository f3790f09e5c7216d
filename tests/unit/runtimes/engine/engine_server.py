"""A daemon that speaks the Engine API over a Unix socket and can be made to do what no real one does on
demand: forget, stall, send half of something. What it sends has the shape of what real ones sent."""

from __future__ import annotations

import json
import queue
import socketserver
import threading
import time
import urllib.parse
from collections.abc import Callable
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

NEVER = "0001-01-01T00:00:00Z"


def stamp(wall_ns: int) -> str:
    whole = datetime.fromtimestamp(wall_ns // 10**9, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{whole}.{wall_ns % 10**9:09}Z"


class Engine:
    """Its containers, what it remembers, who listens, what it was asked."""

    def __init__(self, path: Path, podman: bool = False) -> None:
        self.path = path
        self.podman = podman
        self.containers: dict[str, dict[str, Any]] = {}
        self.logs: dict[str, Callable[[], list[bytes]]] = {}
        self.remembered: list[tuple[int, bytes]] = []
        self.asked: list[tuple[str, str]] = []
        self.stalls: set[str] = set()
        self.listeners: list[queue.Queue[bytes | None]] = []
        self.released = threading.Event()
        self._lock = threading.Lock()
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def container(self, container: str, name: str = "web", **state: Any) -> dict[str, Any]:
        """Make one, or change the state of one: ``began`` and ``ended`` in nanoseconds."""
        made = self.containers.setdefault(
            container,
            {
                "Id": container,
                "Name": f"/{name}",
                "Image": "sha256:" + "5" * 64,
                "RestartCount": 0,
                "Config": {"Image": "bb:1", "Tty": False, "Labels": {}},
                "HostConfig": {"RestartPolicy": {"Name": "no"}, "CgroupParent": ""},
                "State": {"Status": "created", "Running": False, "Pid": 0, "ExitCode": 0, "Error": "",
                          "OOMKilled": False, "StartedAt": NEVER, "FinishedAt": NEVER},
            },
        )  # fmt: skip
        for key, name_there in (("began", "StartedAt"), ("ended", "FinishedAt")):
            if key in state:
                state[name_there] = stamp(state.pop(key))
        if "Status" in state:
            state.setdefault("Running", state["Status"] in ("running", "restarting"))
        made["State"].update(state)
        return made

    def happen(
        self, action: str, container: str, wall_ns: int | None = None, topic: str = "container", **more: str
    ):
        """Something happens to a container; returns when, in nanoseconds."""
        wall_ns = wall_ns or time.time_ns()
        made = self.containers.get(container)
        told = {"name": made["Name"][1:], "image": made["Config"]["Image"]} if made else {}
        actor = {"ID": container, "Attributes": {**told, **more}}
        if topic == "network":
            actor = {
                "ID": "7" * 64,
                "Attributes": {"container": container, "name": "bridge", "type": "bridge"},
            }
        line = json.dumps(
            {"Type": topic, "Action": action, "Actor": actor, "scope": "local",
             "time": wall_ns // 10**9, "timeNano": wall_ns}
        ).encode() + b"\n"  # fmt: skip
        with self._lock:
            self.remembered.append((wall_ns, line))
            for listener in self.listeners:
                listener.put(line)
        return wall_ns

    def answer(self, parts: list[str]) -> Any:
        """What it says to a question that is no stream, None: there is no such thing."""
        if parts == ["containers", "json"]:
            return [{"Id": c["Id"], "State": c["State"]["Status"]} for c in self.containers.values()]
        if parts[0] == "containers":
            return self.containers.get(parts[1])
        return {
            "version": {"Components": [{"Name": "Podman Engine" if self.podman else "Engine"}]},
            "info": {"CgroupDriver": "systemd", "SecurityOptions": ["name=seccomp"]},
            "_ping": "OK",
        }.get(parts[0])

    def send(self, raw: bytes) -> None:
        """Send these bytes to all who listen, as one piece."""
        for listener in self.listeners:
            listener.put(raw)

    def hang_up(self) -> None:
        """End the events of all who listen."""
        with self._lock:
            for listener in self.listeners:
                listener.put(None)
            self.listeners.clear()

    def listen(self, since_ns: int) -> queue.Queue[bytes | None]:
        lines: queue.Queue[bytes | None] = queue.Queue()
        with self._lock:
            for wall_ns, line in self.remembered:
                if wall_ns >= since_ns:
                    lines.put(line)
            self.listeners.append(lines)
        return lines

    def close(self) -> None:
        self.released.set()
        self.hang_up()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        self.path.unlink(missing_ok=True)


class _Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        super().__init__(str(engine.path), _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Whoever went away in the middle of an answer."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"

    def log_message(self, *args: Any) -> None:
        """Nothing."""

    def do_GET(self) -> None:
        engine = self.server.engine
        engine.asked.append((self.command, self.path))
        if any(stall in self.path for stall in engine.stalls):
            engine.released.wait(60)
            return
        url = urllib.parse.urlsplit(self.path)
        parts = url.path.strip("/").split("/")
        if parts[0] == "events":
            self._events(engine, dict(urllib.parse.parse_qsl(url.query)))
        elif parts[-1] == "logs":
            self._pieces(engine.logs.get(parts[1], list)())
        elif (answer := engine.answer(parts)) is not None:
            self._json(answer)
        else:
            self._json({"message": "No such container"}, 404)

    do_POST = do_PUT = do_DELETE = do_HEAD = do_GET  # noqa: N815

    def _json(self, content: Any, status: int = 200) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _events(self, engine: Engine, asked: dict[str, str]) -> None:
        seconds, _, nanos = asked["since"].partition(".")
        self._begin()
        lines = engine.listen(int(seconds) * 10**9 + int(nanos or 0))
        while (line := lines.get()) is not None:
            self._piece(line)
        self.close_connection = True

    def _pieces(self, pieces: list[bytes]) -> None:
        self._begin()
        for piece in pieces:
            self._piece(piece)
        self._piece(b"")

    def _begin(self) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def _piece(self, piece: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.wfile.flush()
