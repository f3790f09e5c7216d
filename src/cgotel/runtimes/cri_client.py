"""What a runtime says over the CRI, as plain data. Times are wall times in nanoseconds, 0 for none."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from cgotel.contract import State, Unavailable
from cgotel.runtimes import cri_api as api
from cgotel.runtimes.grpc_socket import CallFailed, GrpcSocket, Stream
from cgotel.runtimes.schema import Messages, mapping, messages, text


@dataclass(frozen=True, slots=True)
class Status:
    """One container as the runtime sees it. ``pid`` 0: not told. ``attempt`` counts from 0 within its pod."""

    name: str
    attempt: int
    running: bool
    exited: bool
    created_ns: int
    started_ns: int
    finished_ns: int
    code: int
    image: str
    image_id: str
    reason: str
    message: str
    labels: dict[str, str] = field(default_factory=dict)
    pid: int = 0
    cgroup: str | None = None


class Cri:
    """What is asked of one runtime. Everything raises `CallFailed`."""

    def __init__(self, connection: GrpcSocket) -> None:
        self._socket = connection
        self._messages: Messages = {}
        self.runtime = ""

    def open(self) -> None:
        """Connect and see that the CRI is spoken. Raises `Unavailable`."""
        self._socket.open()
        self._messages = messages("cgotel.cri", api.TABLES)
        try:
            answer = self._call(api.VERSION, "VersionRequest", "VersionResponse", version=b"v1")
        except CallFailed as failed:
            raise self.lost(failed) from None
        self.runtime = f"{text(answer.runtime_name)} {text(answer.runtime_version)}"

    def lost(self, failed: CallFailed) -> Unavailable:
        """What a call that failed comes to."""
        if failed.code == "UNIMPLEMENTED":
            return self._socket.unavailable(State.OFF, "the CRI is not served here")
        state = State.GONE if failed.code == "UNAVAILABLE" else State.FAILED
        return self._socket.unavailable(state, str(failed))

    def events(self) -> Stream | None:
        """Messages whenever something happened to a container, None where nobody may listen.

        containerd before 2.0 gives each event to one listener only: listening takes it from the kubelet.
        """
        if self.runtime.startswith(("containerd 1.", "containerd v1.")):
            return None
        return self._socket.stream(api.CONTAINER_EVENTS, self._messages["GetEventsRequest"]())

    def containers(self) -> dict[str, int]:
        """The state of every container, by its id."""
        answer = self._call(api.LIST_CONTAINERS, "ListContainersRequest", "ListContainersResponse")
        return {text(container.id): container.state for container in answer.containers}

    def status(self, container_id: str, verbose: bool) -> Status | None:
        """One container, None where it is gone; its pid and cgroup only if ``verbose``."""
        try:
            answer = self._call(
                api.CONTAINER_STATUS,
                "ContainerStatusRequest",
                "ContainerStatusResponse",
                container_id=container_id.encode(),
                verbose=verbose,
            )
        except CallFailed as failed:
            if failed.code == "NOT_FOUND":
                return None
            raise
        found = answer.status
        info = _info(mapping(answer.info).get("info", ""))
        return Status(
            text(found.metadata.name),
            found.metadata.attempt,
            found.state == api.RUNNING,
            found.state == api.EXITED,
            found.created_at,
            found.started_at,
            found.finished_at,
            found.exit_code,
            text(found.image.user_specified_image or found.image.image),
            text(found.image_ref),
            text(found.reason),
            text(found.message),
            mapping(found.labels),
            info.pid,
            info.cgroup,
        )

    def close(self) -> None:
        """Disconnect. May be called twice."""
        self._socket.close()

    def _call(self, method: str, request: str, answer: str, **fields: Any) -> Any:
        return self._socket.call(method, self._messages[request](**fields), self._messages[answer])


class _Linux(msgspec.Struct):
    cgroups_path: str = msgspec.field(default="", name="cgroupsPath")


class _Spec(msgspec.Struct):
    linux: _Linux = msgspec.field(default_factory=_Linux)


class _Info(msgspec.Struct):
    """What containerd and CRI-O tell beyond the CRI, as JSON."""

    pid: int = 0
    spec: _Spec = msgspec.field(default_factory=_Spec, name="runtimeSpec")

    @property
    def cgroup(self) -> str | None:
        path = self.spec.linux.cgroups_path
        return path if path.startswith("/") else None


def _info(said: str) -> _Info:
    try:
        return msgspec.json.decode(said or "{}", type=_Info)
    except msgspec.DecodeError:
        return _Info()
