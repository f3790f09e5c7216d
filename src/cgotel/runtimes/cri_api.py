"""What is asked of a container runtime by Kubernetes' own interface, and what is read of its answers.

From k8s.io/cri-api, pkg/apis/runtime/v1/api.proto (0.37). Times are wall times in nanoseconds.
"""

from __future__ import annotations

from cgotel.runtimes.schema import ENTRY, Tables

VERSION = "/runtime.v1.RuntimeService/Version"
LIST_CONTAINERS = "/runtime.v1.RuntimeService/ListContainers"
CONTAINER_STATUS = "/runtime.v1.RuntimeService/ContainerStatus"
CONTAINER_EVENTS = "/runtime.v1.RuntimeService/GetContainerEvents"

RUNNING, EXITED = 1, 2
"""ContainerState; 0 is created, 3 unknown."""

TABLES: Tables = {
    "Entry": ENTRY,
    "VersionRequest": {"version": (1, "text")},
    "VersionResponse": {"runtime_name": (2, "text"), "runtime_version": (3, "text")},
    "ContainerMetadata": {"name": (1, "text"), "attempt": (2, "uint32")},
    "ImageSpec": {"image": (1, "text"), "user_specified_image": (18, "text")},
    "ListContainersRequest": {},
    "ListContainersResponse": {"containers": (1, "[]Container")},
    "Container": {"id": (1, "text"), "state": (6, "int32")},
    "ContainerStatusRequest": {"container_id": (1, "text"), "verbose": (2, "bool")},
    "ContainerStatusResponse": {"status": (1, "ContainerStatus"), "info": (2, "[]Entry")},
    "ContainerStatus": {
        "id": (1, "text"),
        "metadata": (2, "ContainerMetadata"),
        "state": (3, "int32"),
        "created_at": (4, "int64"),
        "started_at": (5, "int64"),
        "finished_at": (6, "int64"),
        "exit_code": (7, "int32"),
        "image": (8, "ImageSpec"),
        "image_ref": (9, "text"),
        "reason": (10, "text"),
        "message": (11, "text"),
        "labels": (12, "[]Entry"),
    },
    "GetEventsRequest": {},
}
