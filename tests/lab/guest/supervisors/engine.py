"""The API that Docker and Podman share, over their Unix sockets."""

from __future__ import annotations

import http.client
import json
import socket
import time
from typing import Any
from urllib.parse import urlencode

from tests.lab.guest.supervisors import images
from tests.lab.guest.supervisors.model import (
    GATE,
    End,
    Probe,
    Program,
    Supervisor,
    Workload,
    await_that,
    cgroup_of,
)

_MIB = 1 << 20
_SECOND = 1_000_000_000


class Refused(Exception):  # noqa: N818 - some tests are about being refused
    """The engine answered with an error; its message is the text."""


class Engine(Supervisor):
    """A daemon with Docker's API, version 1.40."""

    socket: str

    def begin(self) -> None:
        self._began = time.time()
        for name in images.NAMES:
            self._ask("POST", "/images/load", images.archive(name))

    def run(self, name: str, program: Program) -> Workload:
        identity = self.create(name, program)
        try:
            self._call("POST", f"/containers/{identity}/start")
        except Refused as error:
            return Workload(self.name, name, identity, refusal=str(error))
        return self.running(name, identity)

    def create(self, name: str, program: Program) -> str:
        """Make a container and return its id."""
        return self._call("POST", f"/containers/create?name={name}", self._body(program))["Id"]

    def running(self, name: str, identity: str) -> Workload:
        """The container as it runs now."""
        pid = self.state(identity)["Pid"]
        return Workload(self.name, name, identity, pid or None, cgroup_of(pid) if pid else None)

    def state(self, identity: str) -> dict[str, Any]:
        """``State`` of inspect, with the count of restarts."""
        told = self._call("GET", f"/containers/{identity}/json")
        return {**told["State"], "RestartCount": told["RestartCount"]}

    def stop(self, workload: Workload, grace_s: int) -> None:
        self._call("POST", f"/containers/{workload.id}/stop?t={grace_s}")

    def restart(self, workload: Workload, grace_s: int) -> None:
        """What an external healer asks for."""
        self._call("POST", f"/containers/{workload.id}/restart?t={grace_s}")

    def kill(self, workload: Workload) -> None:
        self._call("POST", f"/containers/{workload.id}/kill?signal=KILL")

    def execute(self, workload: Workload, script: str) -> None:
        made = self._call("POST", f"/containers/{workload.id}/exec", {"Cmd": ["sh", "-c", script]})
        self._call("POST", f"/exec/{made['Id']}/start", {"Detach": True})

    def wait(self, workload: Workload) -> End:
        def ended() -> dict[str, Any] | None:
            state = self.state(workload.id)
            return None if state["Status"] in ("running", "restarting", "stopping") else state

        state = await_that(f"{workload.name} ends", ended)
        if not workload.refusal:
            await_that(
                f"{self.name} says so", lambda: any(e.startswith("die") for e in self.events(workload))
            )
        return End(state["ExitCode"], state, self.events(workload))

    def health(self, workload: Workload) -> str:
        """``starting``, ``healthy`` or ``unhealthy``."""
        return self.state(workload.id)["Health"]["Status"]

    def events(self, workload: Workload) -> tuple[str, ...]:
        """What was logged of a container: ``start``, ``kill 9``, ``die 137``."""
        asked = {
            "since": int(self._began),
            "until": int(time.time()) + 1,
            "filters": json.dumps({"container": [workload.id]}),
        }
        lines = self._ask("GET", f"/events?{urlencode(asked)}").splitlines()
        return tuple(_word(json.loads(line)) for line in lines)

    def remove(self, name: str) -> None:
        self._call("DELETE", f"/containers/{name}?force=1&v=1")

    def _body(self, program: Program) -> dict[str, Any]:
        memory = (program.memory_mib or 0) * _MIB
        host: dict[str, Any] = {
            # Docker sets up any other network through a hook that takes seconds under emulation.
            "NetworkMode": "host",
            "SecurityOpt": ["seccomp=unconfined"],
            "Memory": memory,
            "MemorySwap": -1 if program.swap else memory,
            "PidsLimit": program.pids or 0,
            "CgroupParent": program.slice or "",
        }
        if program.retries is not None:
            host["RestartPolicy"] = {"Name": "on-failure", "MaximumRetryCount": program.retries}
        body = {
            "Image": program.image,
            "Cmd": program.command or ["sh", "-c", program.script],
            "Env": [f"GATE={GATE}"],
            "HostConfig": host,
        }
        return {**body, "Healthcheck": _health_check(program.probe)} if program.probe else body

    def _call(self, method: str, path: str, document: object = None) -> Any:
        data = self._ask(method, path, json.dumps(document).encode() if document else None)
        return json.loads(data) if data.startswith(b"{") else None

    def _ask(self, method: str, path: str, body: bytes | None = None) -> bytes:
        connection = _Connection(self.socket)
        try:
            kind = "application/json" if body is None or body.startswith(b"{") else "application/x-tar"
            connection.request(method, f"/v1.40{path}", body, {"Content-Type": kind})
            answer = connection.getresponse()
            data = answer.read()
        finally:
            connection.close()
        if answer.status >= 400:
            raise Refused(f"{method} {path}: {answer.status} {data.decode(errors='replace').strip()}")
        return data


class _Connection(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=120)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def _health_check(probe: Probe) -> dict[str, Any]:
    return {
        "Test": ["CMD-SHELL", probe.command],
        "Interval": int(probe.interval_s * _SECOND),
        "Timeout": int(probe.timeout_s * _SECOND),
        "Retries": probe.retries,
    }


def _word(event: dict[str, Any]) -> str:
    """Podman says ``containerExitCode``, and on other events too, where it means nothing."""
    action, attributes = event["Action"], event["Actor"]["Attributes"]
    match action:
        case "die":
            return f"die {attributes.get('exitCode') or attributes.get('containerExitCode')}"
        case "kill" if "signal" in attributes:
            return f"kill {attributes['signal']}"
    return action
