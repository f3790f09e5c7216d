"""What people call a cgroup: a container by its name or short id, a unit by its name, else a path."""

from __future__ import annotations

from cgotel.model import Entity

_CGROUP = "process.linux.cgroup"
_SHORT_ID = 12  # as docker ps and crictl ps print them
_UNITS = frozenset({"slice", "service", "scope", "session", "user_manager", "mount", "socket", "swap"})


def path_of(entity: Entity) -> str | None:
    """The path of a cgroup from the cgroup root; None for what is no cgroup."""
    path = entity.attributes.get(_CGROUP)
    return None if path is None else str(path).removeprefix("0::")


def name_of(entity: Entity, path: str) -> str:
    """A short name. What lies within a container or a unit begins with it: ``3f4e5d6c7b8a/init.scope``."""
    attributes = entity.attributes
    container = _container(entity)
    if entity.kind == "container" and container:
        return container
    if entity.kind == "pod":
        return str(attributes.get("k8s.pod.uid", path))
    if container:
        return f"{container}/{_below(path, str(attributes.get('container.id') or container))}"
    unit = str(attributes.get("systemd.unit.name", ""))
    if entity.kind in _UNITS:
        return unit or path
    return f"{unit}/{_below(path, unit)}" if unit else path


def _container(entity: Entity) -> str:
    name = entity.attributes.get("container.name")
    return str(name) if name else str(entity.attributes.get("container.id", ""))[:_SHORT_ID]


def _below(path: str, name: str) -> str:
    """What follows the last segment of a path that holds a name; without any, its last segment."""
    segments = path.split("/")
    places = [place for place, segment in enumerate(segments) if name in segment]
    return "/".join(segments[places[-1] + 1 :] if places else segments[-1:])
