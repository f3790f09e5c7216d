"""containerd's answers and events as plain data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from cgotel.contract import State, Unavailable
from cgotel.runtimes import containerd_api as api
from cgotel.runtimes.grpc_socket import CallFailed, GrpcSocket, Stream, read
from cgotel.runtimes.schema import Messages, mapping, messages, text

_FILTERS = (b'topic~="^/tasks/"', b'topic~="^/containers/"')


@dataclass(frozen=True, slots=True)
class Container:
    """What containerd keeps of a container; ``cgroup`` as its spec asks for it, None if it does not."""

    image: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    cgroup: str | None = None
    created_ns: int = 0


@dataclass(frozen=True, slots=True)
class Task:
    """A main process that containerd knows of. ``exited_ns`` is wall time, 0 while it runs."""

    namespace: str
    container: str
    pid: int
    created: bool
    stopped: bool
    code: int
    exited_ns: int


@dataclass(frozen=True, slots=True)
class Happening:
    """One event. ``kind`` is the name of its message (``TaskExit``); times are wall times.

    ``process`` is the id of an exec, or the container's own where the main process is meant.
    """

    kind: str
    time_ns: int
    namespace: str
    container: str
    process: str = ""
    pid: int = 0
    code: int = 0
    exited_ns: int = 0
    image: str = ""


class Containerd:
    """What is asked of one containerd. Everything raises `CallFailed`."""

    def __init__(self, connection: GrpcSocket) -> None:
        self._socket = connection
        self._messages: Messages = {}

    def open(self) -> None:
        """Connect and see that it is containerd. Raises `Unavailable`."""
        self._socket.open()
        self._messages = messages("cgotel.containerd", api.TABLES)
        try:
            self.version()
        except CallFailed as failed:
            raise self.lost(failed) from None

    def lost(self, failed: CallFailed) -> Unavailable:
        """What a call that failed comes to."""
        state = State.GONE if failed.code == "UNAVAILABLE" else State.FAILED
        return self._socket.unavailable(state, str(failed))

    def version(self) -> str:
        """Its version; a sign of life."""
        return text(self._call(api.VERSION, "Empty", "VersionResponse").version)

    def subscribe(self) -> Stream:
        """Events of tasks and containers, of all namespaces, from about now on: see `happening`."""
        request = self._messages["SubscribeRequest"](filters=_FILTERS)
        return self._socket.stream(api.SUBSCRIBE, request)

    def tasks(self) -> Iterator[Task]:
        """Every task of every namespace."""
        listed = self._call(api.LIST_NAMESPACES, "ListNamespacesRequest", "ListNamespacesResponse")
        for entry in listed.namespaces:
            namespace = text(entry.name)
            answer = self._call(api.LIST_TASKS, "ListTasksRequest", "ListTasksResponse", namespace)
            for process in answer.tasks:
                yield Task(
                    namespace,
                    # containerd before 1.7 left container_id empty in a list
                    text(process.container_id) or text(process.id),
                    process.pid,
                    process.status == api.CREATED,
                    process.status == api.STOPPED,
                    process.exit_status,
                    _ns(process.exited_at),
                )

    def container(self, namespace: str, container_id: str) -> Container | None:
        """One container, None where it is gone already."""
        request = {"id": container_id.encode("utf-8", "surrogateescape")}
        try:
            answer = self._call(
                api.GET_CONTAINER, "GetContainerRequest", "GetContainerResponse", namespace, **request
            )
        except CallFailed as failed:
            if failed.code == "NOT_FOUND":
                return None
            raise
        found = answer.container
        return Container(
            text(found.image), mapping(found.labels), _cgroup(found.spec.value), _ns(found.created_at)
        )

    def happening(self, envelope: bytes) -> Happening | None:
        """An event as it came from the stream; None for a kind that is not looked at."""
        outer = self._read("Envelope", envelope)
        kind = text(outer.event.type_url).rpartition(".")[2]
        if kind not in api.EVENTS:
            return None
        inner = self._read(kind, outer.event.value)
        time_ns = _ns(outer.timestamp)
        if kind.startswith("Container"):
            image = text(inner.image) if kind == "ContainerCreate" else ""
            return Happening(kind, time_ns, text(outer.namespace), text(inner.id), image=image)
        process_id = text(inner.id) if kind in ("TaskExit", "TaskDelete") else ""
        container_id = text(inner.container_id)
        return Happening(
            kind,
            time_ns,
            text(outer.namespace),
            container_id,
            process_id or container_id,
            getattr(inner, "pid", 0),
            getattr(inner, "exit_status", 0),
            _ns(inner.exited_at) if hasattr(inner, "exited_at") else 0,
        )

    def _read(self, message: str, content: bytes) -> Any:
        return read(self._messages[message], content)

    def _call(self, method: str, request: str, answer: str, namespace: str = "", **fields: Any) -> Any:
        metadata = ((api.NAMESPACE, namespace),) if namespace else ()
        return self._socket.call(method, self._messages[request](**fields), self._messages[answer], metadata)

    def close(self) -> None:
        """Disconnect. May be called twice."""
        self._socket.close()


def _ns(stamp: Any) -> int:
    return int(stamp.seconds) * 10**9 + int(stamp.nanos)


class _Linux(msgspec.Struct):
    cgroups_path: str = msgspec.field(default="", name="cgroupsPath")


class _Spec(msgspec.Struct):
    linux: _Linux = msgspec.field(default_factory=_Linux)


def _cgroup(spec: bytes) -> str | None:
    """Where a container's cgroup is to be, by its OCI spec: ``/default/ID`` or ``SLICE:PREFIX:NAME``."""
    try:
        path = msgspec.json.decode(spec, type=_Spec).linux.cgroups_path
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    if path.startswith("/"):
        return path
    slice_name, _, scope = path.partition(":")
    prefix, colon, name = scope.partition(":")
    if not colon or not slice_name.endswith(".slice"):
        return None
    return f"{_slice_path(slice_name)}/{prefix}-{name}.scope" if prefix else None


def _slice_path(name: str) -> str:
    """systemd.slice(5): ``a-b.slice`` lies in ``a.slice``."""
    parts = name.removesuffix(".slice").split("-")
    return "".join(f"/{'-'.join(parts[: n + 1])}.slice" for n in range(len(parts)) if parts[0])
