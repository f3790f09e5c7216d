"""What a container of containerd is called, and who else knows it by that name."""

from __future__ import annotations

import re
from typing import Final

from cgotel.evidence import Workload
from cgotel.runtimes.containerd_client import Container
from cgotel.runtimes.process import Process

DOCKER: Final = "moby"
"""The namespace that dockerd keeps its containers in."""
KUBERNETES: Final = "k8s.io"
"""The namespace of the CRI."""

_UNIQUE = re.compile(r"[0-9a-f]{64}")
_NAMES = ("io.kubernetes.container.name", "nerdctl/name")
_RESTARTS = "containerd.io/restart.count"
_KIND = "io.cri-containerd.kind"


def workload(
    namespace: str,
    container_id: str,
    runtime: str,
    pid: int | None,
    container: Container | None,
    found: Process | None,
) -> Workload:
    """Who a container is, from what containerd keeps and what /proc told of its main process.

    An id that its maker chose (``ctr run IMAGE web``) is one only within its namespace, which goes before
    it then: ``default/web``.
    """
    container = container or Container()
    labels = container.labels
    name = next((labels[key] for key in _NAMES if labels.get(key)), "")
    if labels.get(_KIND) == "sandbox":
        name = "POD"
    return Workload(
        runtime=runtime,
        id=container_id if _UNIQUE.fullmatch(container_id) else f"{namespace}/{container_id}",
        name=name or ("" if _UNIQUE.fullmatch(container_id) else container_id),
        cgroup=(found.cgroup if found else None) or container.cgroup,
        pid=pid,
        image=container.image,
        pod=labels.get("io.kubernetes.pod.name", ""),
        namespace=labels.get("io.kubernetes.pod.namespace", ""),
    )


def restarts(container: Container | None) -> int | None:
    """How often containerd's restart monitor began the container anew, None where it does not count."""
    count = container.labels.get(_RESTARTS, "") if container else ""
    return int(count) if count.isascii() and count.isdigit() and len(count) < 10 else None
