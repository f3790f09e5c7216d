"""containerd's services on a real gRPC server, with the tasks and events that a test wants."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import grpc
from tests.unit.runtimes.grpc_server import Refused, Server

from cgotel.runtimes import containerd_api as api
from cgotel.runtimes.schema import messages

M = messages("tests.containerd", api.TABLES)
NONE: Mapping[str, str] = {}


def stamp(time_ns: int) -> Any:
    return M["Timestamp"](seconds=time_ns // 10**9, nanos=time_ns % 10**9)


def event(kind: str, time_ns: int, namespace: str = "default", **fields: Any) -> bytes:
    """An envelope as the stream brings it: ``event("TaskExit", at, container_id=b"web", ...)``."""
    inner = M[kind](**fields).SerializeToString()
    wrapped = M["Any"](type_url=f"containerd.events.{kind}".encode(), value=inner)
    envelope = M["Envelope"](timestamp=stamp(time_ns), namespace=namespace.encode(), event=wrapped)
    return envelope.SerializeToString()


def task(name: str, pid: int, status: int = 2, code: int = 0, exited_ns: int = 0) -> Any:
    return M["Process"](
        id=name.encode(), pid=pid, status=status, exit_status=code, exited_at=stamp(exited_ns)
    )


class ContainerdServer(Server):
    """``tasks`` and ``containers`` by namespace; change them while it runs."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            path,
            {
                api.VERSION: lambda request, metadata: M["VersionResponse"](version=b"1").SerializeToString(),
                api.LIST_NAMESPACES: self._list_namespaces,
                api.LIST_TASKS: self._list_tasks,
                api.GET_CONTAINER: self._get_container,
            },
            (api.SUBSCRIBE,),
        )
        self.tasks: dict[str, list[Any]] = {"default": []}
        self.containers: dict[tuple[str, str], Any] = {}

    def keep(
        self,
        name: str,
        namespace: str = "default",
        image: str = "",
        cgroup: str = "",
        labels: Mapping[str, str] = NONE,
    ) -> None:
        """A container of the store."""
        entries = [M["Entry"](key=key.encode(), value=value.encode()) for key, value in labels.items()]
        spec = json.dumps({"ociVersion": "1.0.2", "linux": {"cgroupsPath": cgroup}}).encode()
        self.containers[namespace, name] = M["Container"](
            id=name.encode(), labels=entries, image=image.encode(), spec=M["Any"](value=spec)
        )

    def _list_namespaces(self, request: bytes, metadata: Mapping[str, str]) -> bytes:
        names = [M["Namespace"](name=name.encode()) for name in self.tasks]
        return bytes(M["ListNamespacesResponse"](namespaces=names).SerializeToString())

    def _list_tasks(self, request: bytes, metadata: Mapping[str, str]) -> bytes:
        tasks = self.tasks[metadata[api.NAMESPACE]]
        return bytes(M["ListTasksResponse"](tasks=tasks).SerializeToString())

    def _get_container(self, request: bytes, metadata: Mapping[str, str]) -> bytes:
        name = M["GetContainerRequest"].FromString(request).id.decode()
        found = self.containers.get((metadata[api.NAMESPACE], name))
        if found is None:
            raise Refused(grpc.StatusCode.NOT_FOUND, f"container {name}: not found")
        return bytes(M["GetContainerResponse"](container=found).SerializeToString())
