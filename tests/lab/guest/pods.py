"""Pods as a kubelet makes them, over the CRI: on the host's network, so that no CNI plugin is needed."""

from __future__ import annotations

from typing import Any

from tests.lab.guest.own_containerd import IMAGE

from cgotel.runtimes.grpc_socket import GrpcSocket
from cgotel.runtimes.schema import ENTRY, messages

_NODE = 2  # NamespaceMode
_SERVICE = "/runtime.v1.RuntimeService"

# k8s.io/cri-api, pkg/apis/runtime/v1/api.proto: what it takes to run a pod
_M = messages(
    "lab.cri",
    {
        "Entry": ENTRY,
        "Nothing": {},
        "Id": {"id": (1, "text")},
        "PodSandboxMetadata": {
            "name": (1, "text"),
            "uid": (2, "text"),
            "namespace": (3, "text"),
            "attempt": (4, "uint32"),
        },
        "NamespaceOption": {"network": (1, "int32")},
        "LinuxSandboxSecurityContext": {"namespace_options": (1, "NamespaceOption")},
        "LinuxPodSandboxConfig": {
            "cgroup_parent": (1, "text"),
            "security_context": (2, "LinuxSandboxSecurityContext"),
        },
        "PodSandboxConfig": {
            "metadata": (1, "PodSandboxMetadata"),
            "labels": (6, "[]Entry"),
            "linux": (8, "LinuxPodSandboxConfig"),
        },
        "RunPodSandboxRequest": {"config": (1, "PodSandboxConfig")},
        "ContainerMetadata": {"name": (1, "text"), "attempt": (2, "uint32")},
        "ImageSpec": {"image": (1, "text")},
        "LinuxContainerResources": {"memory_limit_in_bytes": (4, "int64")},
        "LinuxContainerConfig": {"resources": (1, "LinuxContainerResources")},
        "ContainerConfig": {
            "metadata": (1, "ContainerMetadata"),
            "image": (2, "ImageSpec"),
            "command": (3, "[]text"),
            "labels": (9, "[]Entry"),
            "linux": (15, "LinuxContainerConfig"),
        },
        "CreateContainerRequest": {
            "pod_sandbox_id": (1, "text"),
            "config": (2, "ContainerConfig"),
            "sandbox_config": (3, "PodSandboxConfig"),
        },
        "StopContainerRequest": {"container_id": (1, "text"), "timeout": (2, "int64")},
    },
)


class Pod:
    """A pod, with as many containers as a test makes."""

    def __init__(self, socket: str, name: str) -> None:
        self._cri = GrpcSocket(socket, "lab", "")
        self._cri.open()
        self._labels = {
            b"io.kubernetes.pod.name": name.encode(),
            b"io.kubernetes.pod.namespace": b"lab",
            b"io.kubernetes.pod.uid": name.encode(),
        }
        metadata = _M["PodSandboxMetadata"](name=name.encode(), uid=name.encode(), namespace=b"lab")
        host = _M["LinuxSandboxSecurityContext"](namespace_options=_M["NamespaceOption"](network=_NODE))
        linux = _M["LinuxPodSandboxConfig"](
            cgroup_parent=f"/kubepods/pod{name}".encode(), security_context=host
        )
        self._config = _M["PodSandboxConfig"](metadata=metadata, labels=_entries(self._labels), linux=linux)
        made = self._call("RunPodSandbox", _M["RunPodSandboxRequest"](config=self._config), "Id")
        self.id = made.id

    def run(self, name: str, *command: str, attempt: int = 0, memory: int = 0) -> str:
        """Make and start a container; its id. Raises `CallFailed` where it does not start."""
        container_id = self.make(name, *command, attempt=attempt, memory=memory)
        self.start(container_id)
        return container_id

    def make(self, name: str, *command: str, attempt: int = 0, memory: int = 0) -> str:
        """Make a container; its id."""
        resources = _M["LinuxContainerResources"](memory_limit_in_bytes=memory)
        config = _M["ContainerConfig"](
            metadata=_M["ContainerMetadata"](name=name.encode(), attempt=attempt),
            image=_M["ImageSpec"](image=IMAGE.encode()),
            command=[word.encode() for word in command],
            labels=_entries({**self._labels, b"io.kubernetes.container.name": name.encode()}),
            linux=_M["LinuxContainerConfig"](resources=resources),
        )
        request = _M["CreateContainerRequest"](
            pod_sandbox_id=self.id, config=config, sandbox_config=self._config
        )
        return str(self._call("CreateContainer", request, "Id").id.decode())

    def start(self, container_id: str) -> None:
        """Start a container. Raises `CallFailed` where it does not start."""
        self._call("StartContainer", _M["Id"](id=container_id.encode()), "Nothing")

    def stop(self, container_id: str) -> None:
        """Stop a container as a kubelet does, with a grace of a second."""
        request = _M["StopContainerRequest"](container_id=container_id.encode(), timeout=1)
        self._call("StopContainer", request, "Nothing")

    def remove_container(self, container_id: str) -> None:
        """Remove a container, whatever its state."""
        self._call("RemoveContainer", _M["Id"](id=container_id.encode()), "Nothing")

    def remove(self) -> None:
        """Remove the pod with all that is in it."""
        self._call("StopPodSandbox", _M["Id"](id=self.id), "Nothing")
        self._call("RemovePodSandbox", _M["Id"](id=self.id), "Nothing")
        self._cri.close()

    def _call(self, method: str, request: Any, answer: str) -> Any:
        return self._cri.call(f"{_SERVICE}/{method}", request, _M[answer], timeout_s=90)


def _entries(pairs: dict[bytes, bytes]) -> list[Any]:
    return [_M["Entry"](key=key, value=value) for key, value in pairs.items()]
