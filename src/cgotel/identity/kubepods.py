"""Kubernetes pods, as the kubelet names their cgroups (pkg/kubelet/cm: pod_container_manager_linux.go).

With the systemd driver every part of the way is spelled out again in the slice's name and ``-``
becomes ``_``; with the cgroupfs driver the names are plain directories. A ``--cgroup-root`` (kind's
``kubelet``) goes before ``kubepods``. Guaranteed pods have no directory of their QoS class.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from cgotel.identity.facts import NOTHING, POD_QOS, POD_UID, Found

_SLICE = re.compile(r"(?:^|-)kubepods(?:-(burstable|besteffort))?-pod([^-:]+)\.slice\Z")
_QOS_CLASSES = {None: "Guaranteed", "burstable": "Burstable", "besteffort": "BestEffort"}


def pod_slice(name: str, above: Sequence[str]) -> Found | None:
    """A pod of the systemd driver: ``kubepods-burstable-pod<uid>.slice``."""
    attributes = pod_of(name)
    return Found("pod", attributes) if attributes else None


def pod_of(slice_name: str) -> Mapping[str, str]:
    """The pod that a slice's name tells of; nothing if it tells of none."""
    match = _SLICE.search(slice_name) if "kubepods" in slice_name else None
    if match is None:
        return NOTHING
    return {POD_UID: match[2].replace("_", "-"), POD_QOS: _QOS_CLASSES[match[1]]}


def pod_directory(name: str, above: Sequence[str]) -> Found | None:
    """A pod of the cgroupfs driver: ``kubepods/besteffort/pod<uid>``."""
    uid = name.removeprefix("pod")
    if uid in ("", name):
        return None
    if above[-1:] == ["kubepods"]:
        qos_class = "Guaranteed"
    elif above[-2:-1] == ["kubepods"] and above[-1] in ("burstable", "besteffort"):
        qos_class = _QOS_CLASSES[above[-1]]
    else:
        return None
    return Found("pod", {POD_UID: uid, POD_QOS: qos_class})
