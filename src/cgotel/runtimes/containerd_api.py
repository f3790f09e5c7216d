"""What is asked of containerd, and the fields that are read of its answers.

From containerd's own ``api/`` (2.4; the numbers are those of 1.2 too): services/{version,events,tasks,
containers,namespaces}/v1, types/event.proto, types/task/task.proto, events/{task,container}.proto.
"""

from __future__ import annotations

from cgotel.runtimes.schema import ENTRY, Tables

VERSION = "/containerd.services.version.v1.Version/Version"
SUBSCRIBE = "/containerd.services.events.v1.Events/Subscribe"
LIST_TASKS = "/containerd.services.tasks.v1.Tasks/List"
GET_CONTAINER = "/containerd.services.containers.v1.Containers/Get"
LIST_NAMESPACES = "/containerd.services.namespaces.v1.Namespaces/List"

NAMESPACE = "containerd-namespace"
"""The metadata key that says which namespace a call is about."""

CREATED, STOPPED = 1, 3
"""types/task/task.proto, Status: whatever is neither of the two, and not 0, runs or is paused."""

EVENTS: Tables = {
    "ContainerCreate": {"id": (1, "text"), "image": (2, "text")},
    "ContainerDelete": {"id": (1, "text")},
    "TaskCreate": {"container_id": (1, "text"), "pid": (6, "uint32")},
    "TaskStart": {"container_id": (1, "text"), "pid": (2, "uint32")},
    "TaskExit": {
        "container_id": (1, "text"),
        "id": (2, "text"),
        "pid": (3, "uint32"),
        "exit_status": (4, "uint32"),
        "exited_at": (5, "Timestamp"),
    },
    "TaskDelete": {
        "container_id": (1, "text"),
        "pid": (2, "uint32"),
        "exit_status": (3, "uint32"),
        "exited_at": (4, "Timestamp"),
        "id": (5, "text"),
    },
    "TaskOOM": {"container_id": (1, "text")},
    "TaskPaused": {"container_id": (1, "text")},
    "TaskResumed": {"container_id": (1, "text")},
}
"""What an event may hold, by the last part of its type."""

TABLES: Tables = {
    "Empty": {},
    "Entry": ENTRY,
    "Any": {"type_url": (1, "text"), "value": (2, "bytes")},  # google/protobuf/any.proto
    "Timestamp": {"seconds": (1, "int64"), "nanos": (2, "int32")},  # google/protobuf/timestamp.proto
    "VersionResponse": {"version": (1, "text")},
    "SubscribeRequest": {"filters": (1, "[]text")},
    "Envelope": {
        "timestamp": (1, "Timestamp"),
        "namespace": (2, "text"),
        "topic": (3, "text"),
        "event": (4, "Any"),
    },
    "Namespace": {"name": (1, "text")},
    "ListNamespacesRequest": {},
    "ListNamespacesResponse": {"namespaces": (1, "[]Namespace")},
    "ListTasksRequest": {},
    "ListTasksResponse": {"tasks": (1, "[]Process")},
    "Process": {
        "container_id": (1, "text"),
        "id": (2, "text"),
        "pid": (3, "uint32"),
        "status": (4, "int32"),
        "exit_status": (9, "uint32"),
        "exited_at": (10, "Timestamp"),
    },
    "GetContainerRequest": {"id": (1, "text")},
    "GetContainerResponse": {"container": (1, "Container")},
    "Container": {
        "id": (1, "text"),
        "labels": (2, "[]Entry"),
        "image": (3, "text"),
        "spec": (5, "Any"),
        "created_at": (8, "Timestamp"),
    },
    **EVENTS,
}
