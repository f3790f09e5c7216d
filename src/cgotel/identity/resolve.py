"""From a cgroup's path to its identity: each name is looked at in turn, from the root inwards.

What a name tells holds for all below it, save that

- a container within a container, and a pod within one (Docker in Docker, kind), take over
  ``container.*``; the outer container's id or name stays as ``cgroup.parent.container.*``;
- a pod takes over ``k8s.*`` likewise;
- a slice or a pod ends the unit around it: there begins another service manager's tree.

So a cgroup that a container made for itself (crun's ``container``, systemd's ``init.scope``) is of
its own kind, and carries its container's ``container.id``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

from cgotel.identity import containers, kubepods, machines, schedulers, units
from cgotel.identity.facts import (
    CONTAINER_ID,
    CONTAINER_NAME,
    CONTAINER_RUNTIME,
    NOTHING,
    OUTER_CONTAINER_ID,
    OUTER_CONTAINER_NAME,
    POD_QOS,
    POD_UID,
    SLICE_NAME,
    UNIT_NAME,
    Found,
    Identity,
    Kind,
)
from cgotel.identity.paths import split, text

Scheme: TypeAlias = Callable[[str, Sequence[str]], Found | None]

# The first scheme that knows a name has it. A unit's name ends in its type; what ends in none of
# these is a plain directory.
_UNIT_SCHEMES: Mapping[str, tuple[Scheme, ...]] = {
    "slice": (kubepods.pod_slice, containers.podman_pod, schedulers.ecs_slice, units.slice_),
    "scope": (containers.scope, machines.scope, schedulers.nomad, units.scope),
    "service": (machines.service, units.service),
    "mount": (units.mount,),
    "socket": (units.socket,),
    "swap": (units.swap,),
}
_DIRECTORY_SCHEMES: tuple[Scheme, ...] = (
    containers.directory,
    kubepods.pod_directory,
    machines.lxc,
    containers.misplaced,
    containers.build_step,
    schedulers.slurm,
    schedulers.ecs_directory,
    containers.garden,
    machines.libvirt,
)

_PLAIN = Found("cgroup")
_ROOT = Identity("root", NOTHING)

_OUTER_NAMES = {CONTAINER_ID: OUTER_CONTAINER_ID, CONTAINER_NAME: OUTER_CONTAINER_NAME}
_OF_A_CONTAINER = frozenset({CONTAINER_ID, CONTAINER_NAME, CONTAINER_RUNTIME})
_OF_AN_OUTER = frozenset(_OUTER_NAMES.values())
_ENDED_BY: Mapping[Kind, frozenset[str]] = {
    "container": _OF_A_CONTAINER,
    "pod": _OF_A_CONTAINER | {POD_UID, POD_QOS, UNIT_NAME},
    "slice": frozenset({UNIT_NAME}),
}


def identify(path: str) -> Identity:
    """What the cgroup at ``path`` (from the cgroup root, as os.fsdecode() gives it) is.

    Pure: looks at nothing but the path, and never raises. Bytes that are no UTF-8 come out as ``\\xNN``.
    """
    above: list[str] = []
    inherited: dict[str, str] = {}
    around = found = _PLAIN
    for name in split(path):
        around, found = found, _recognise(name, above)
        if found is not _PLAIN:
            inherited = _within(inherited, found)
        above.append(name)
    if not above:
        return _ROOT
    attributes = {**inherited, **found.own}
    if around.kind == "slice" and found.kind != "pod":
        attributes[SLICE_NAME] = around.own[UNIT_NAME]
    if not path.isascii():
        attributes = {key: text(value) for key, value in attributes.items()}
    return Identity(found.kind, MappingProxyType(attributes))


def _recognise(name: str, above: Sequence[str]) -> Found:
    unit_type = name.rpartition(".")[2]
    for scheme in _UNIT_SCHEMES.get(unit_type, _DIRECTORY_SCHEMES):
        found = scheme(name, above)
        if found is not None:
            return found
    return _PLAIN


def _within(outside: dict[str, str], found: Found) -> dict[str, str]:
    """The attributes that hold below a name, given those that hold outside it."""
    ended = _ENDED_BY.get(found.kind)
    if ended is None or ended.isdisjoint(outside):
        return {**outside, **found.attributes}
    outer = {_OUTER_NAMES[key]: outside[key] for key in _OUTER_NAMES if key in outside and key in ended}
    if outer:
        ended |= _OF_AN_OUTER
    kept = {key: value for key, value in outside.items() if key not in ended}
    return {**kept, **outer, **found.attributes}
