"""What a container of containerd is called, and who else knows it by that name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from cgotel.evidence import Workload
from cgotel.runtimes.containerd_client import Container
from cgotel.runtimes.process import Process

DOCKER: Final = "moby"
"""The namespace that dockerd keeps its containers in."""
KUBERNETES: Final = "k8s.io"
"""The namespace of the CRI."""

POD: Final = "io.kubernetes.pod.name"
POD_NAMESPACE: Final = "io.kubernetes.pod.namespace"
"""Labels that the kubelet gives every container of a pod."""

_UNIQUE = re.compile(r"[0-9a-f]{64}")
_NAME = "nerdctl/name"
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
    name = labels.get(_NAME, "")
    if labels.get(POD):
        name = name_in_pod(labels, "POD" if labels.get(_KIND) == "sandbox" else "")
    return Workload(
        runtime=runtime,
        id=container_id if _UNIQUE.fullmatch(container_id) else f"{namespace}/{container_id}",
        name=name or ("" if _UNIQUE.fullmatch(container_id) else container_id),
        cgroup=(found.cgroup if found else None) or container.cgroup,
        pid=pid,
        image=container.image,
        pod=labels.get(POD, ""),
        namespace=labels.get(POD_NAMESPACE, ""),
    )


def name_in_pod(labels: Mapping[str, str], fallback: str) -> str:
    """``NAMESPACE/POD/CONTAINER``: on one node many pods have a container of the same name."""
    container = labels.get("io.kubernetes.container.name") or fallback
    return "/".join(filter(None, (labels.get(POD_NAMESPACE), labels.get(POD), container)))


def restarts(container: Container | None) -> int | None:
    """How often containerd's restart monitor began the container anew, None where it does not count."""
    count = container.labels.get(_RESTARTS, "") if container else ""
    return int(count) if count.isascii() and count.isdigit() and len(count) < 10 else None
