"""The words of an identity: kinds, attribute names, and what one name in a path tells.

Attribute names are those of the OpenTelemetry semantic conventions 1.44 where they hold one
(``container.*``, ``k8s.pod.uid``, ``user.id``, ``aws.ecs.task.id``), else the Collector's
(``systemd.unit.name``, ``k8s.pod.qos_class``), else the system's own word after the system's name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, NamedTuple, TypeAlias

Kind: TypeAlias = Literal[
    "root",
    "container",
    "pod",
    "machine",
    "job",
    "slice",
    "service",
    "scope",
    "session",
    "user_manager",
    "mount",
    "socket",
    "swap",
    "cgroup",
]

KINDS: Mapping[Kind, str] = MappingProxyType(
    {
        "root": "the root of the cgroup tree",
        "container": "a container's own cgroup, whatever runtime made it",
        "pod": "a Kubernetes pod, as the kubelet makes it",
        "machine": "a virtual machine, or what systemd-machined knows by name only",
        "job": "a Slurm job on this node",
        "slice": "a systemd slice, and no pod",
        "service": "a systemd service",
        "scope": "a systemd scope, and nothing more special",
        "session": "a login session (session-N.scope)",
        "user_manager": "the systemd instance of one user (user@UID.service)",
        "mount": "a systemd mount unit",
        "socket": "a systemd socket unit",
        "swap": "a systemd swap unit",
        "cgroup": "anything else; its attributes say in what it lies",
    }
)

CONTAINER_ID = "container.id"
CONTAINER_NAME = "container.name"
CONTAINER_RUNTIME = "container.runtime.name"
OUTER_CONTAINER_ID = "cgroup.parent.container.id"
OUTER_CONTAINER_NAME = "cgroup.parent.container.name"
POD_UID = "k8s.pod.uid"
POD_QOS = "k8s.pod.qos_class"
PODMAN_POD_ID = "podman.pod.id"
UNIT_NAME = "systemd.unit.name"
SLICE_NAME = "systemd.slice.name"
SESSION_ID = "systemd.session.id"
MACHINE_NAME = "systemd.machine.name"
DOMAIN_NAME = "libvirt.domain.name"
PROXMOX_VM_ID = "proxmox.vm.id"
USER_ID = "user.id"
SLURM_JOB_ID = "slurm.job.id"
SLURM_JOB_SLUID = "slurm.job.sluid"
SLURM_STEP_ID = "slurm.step.id"
SLURM_TASK_ID = "slurm.task.id"
ECS_TASK_ID = "aws.ecs.task.id"
NOMAD_ALLOC_ID = "nomad.alloc.id"
NOMAD_TASK_NAME = "nomad.task.name"

ATTRIBUTES: Mapping[str, str] = MappingProxyType(
    {
        CONTAINER_ID: "the innermost container's id, in full, as its runtime knows it",
        CONTAINER_NAME: "the innermost container's name, where the path holds a name instead of an id",
        CONTAINER_RUNTIME: "what made it: docker, podman, containerd, cri-o, buildkit, crun, runc, garden, "
        "lxc, libvirt, systemd-nspawn; absent where the path does not say",
        OUTER_CONTAINER_ID: "the id of the container around this container or pod (Docker in Docker, kind)",
        OUTER_CONTAINER_NAME: "likewise its name, where it has one instead of an id",
        POD_UID: "the Kubernetes pod's UID; a static pod's has 32 hexadecimal digits and no dashes",
        POD_QOS: "the pod's QoS class: Guaranteed, Burstable, BestEffort",
        PODMAN_POD_ID: "the id of a Podman pod",
        UNIT_NAME: "the innermost systemd unit, as systemctl spells it; not for a container's or pod's own",
        SLICE_NAME: "the systemd slice directly around, where that is no pod",
        SESSION_ID: "logind's id of the session",
        MACHINE_NAME: "the name registered with systemd-machined",
        DOMAIN_NAME: "the libvirt domain's name; libvirt cuts long ones",
        PROXMOX_VM_ID: "the Proxmox VMID of a virtual machine",
        USER_ID: "the numeric id of the user whose slice or manager it is",
        SLURM_JOB_ID: "the Slurm job id",
        SLURM_JOB_SLUID: "the job's lexicographically sortable id, which newer Slurm puts in the path",
        SLURM_STEP_ID: "the step: a number, or batch, extern, interactive",
        SLURM_TASK_ID: "the task's number within its step",
        ECS_TASK_ID: "the Amazon ECS task",
        NOMAD_ALLOC_ID: "the Nomad allocation",
        NOMAD_TASK_NAME: "the Nomad task within its allocation",
    }
)

NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Identity:
    """What a cgroup is, and the attributes that name it and what it lies in. Values are valid UTF-8."""

    kind: Kind
    attributes: Mapping[str, str]


class Found(NamedTuple):
    """What one name in a path tells: ``attributes`` hold for all below as well, ``own`` do not."""

    kind: Kind
    attributes: Mapping[str, str] = NOTHING
    own: Mapping[str, str] = NOTHING
