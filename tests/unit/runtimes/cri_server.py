"""The CRI on a real gRPC server, with the containers that a test wants."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import grpc
from tests.unit.runtimes.grpc_server import Refused, Server

from cgotel.runtimes import cri_api as api
from cgotel.runtimes.schema import messages

M = messages("tests.cri", api.TABLES)
POD = {
    "io.kubernetes.container.name": "app",
    "io.kubernetes.pod.name": "web-0",
    "io.kubernetes.pod.namespace": "shop",
}


class CriServer(Server):
    """Change its containers while it runs; `ring` sends an event."""

    def __init__(self, path: Path, runtime: str = "containerd", version: str = "2.1.0") -> None:
        calls = {api.LIST_CONTAINERS: self._list, api.CONTAINER_STATUS: self._status}
        super().__init__(path, calls, (api.CONTAINER_EVENTS,))
        name = M["VersionResponse"](runtime_name=runtime.encode(), runtime_version=version.encode())
        self.calls[api.VERSION] = lambda request, metadata: name.SerializeToString()
        self.containers: dict[str, tuple[Any, int]] = {}

    def keep(
        self, container_id: str, state: int, *, pid: int = 0, labels: Mapping[str, str] = POD, **more: Any
    ) -> None:
        """A container, by the fields of its ContainerStatus; text as str."""
        fields = {key: value.encode() if isinstance(value, str) else value for key, value in more.items()}
        entries = [M["Entry"](key=key.encode(), value=value.encode()) for key, value in labels.items()]
        metadata = M["ContainerMetadata"](name=b"app", attempt=fields.pop("attempt", 0))
        status = M["ContainerStatus"](
            id=container_id.encode(), state=state, metadata=metadata, labels=entries, **fields
        )
        self.containers[container_id] = (status, pid)

    def ring(self) -> None:
        """Send an event to whoever listens."""
        self.put(b"\x0a\x01x")

    def _list(self, request: bytes, metadata: Mapping[str, str]) -> bytes:
        listed = [M["Container"](id=s.id, state=s.state) for s, _ in self.containers.values()]
        return bytes(M["ListContainersResponse"](containers=listed).SerializeToString())

    def _status(self, request: bytes, metadata: Mapping[str, str]) -> bytes:
        asked = M["ContainerStatusRequest"].FromString(request)
        found = self.containers.get(asked.container_id.decode())
        if found is None:
            raise Refused(grpc.StatusCode.NOT_FOUND, "no such container")
        status, pid = found
        told = {"pid": pid, "runtimeSpec": {"linux": {"cgroupsPath": "/kubepods/podx/c"}}, "more": [1]}
        info = [M["Entry"](key=b"info", value=json.dumps(told).encode())] if asked.verbose else []
        return bytes(M["ContainerStatusResponse"](status=status, info=info).SerializeToString())
