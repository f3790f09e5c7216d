"""Names that collectd can hold: short, stable, of one line, without a slash.

Each part of an identifier has 127 bytes, and collectd cuts what is longer without a word, so that
two cgroups could become one series; it makes every slash an underscore, with the same effect. So a
name that must be changed carries a hash of what it was changed from. The same cgroup has the same
name in every sweep and after every restart, whatever else lives beside it.
"""

from __future__ import annotations

import hashlib

from cgotel.model import Entity
from cgotel.outputs.names import name_of, path_of

MOST_BYTES = 100

_HASH_DIGITS = 8
_SEPARATOR = "~"
_ROOT = "root"
_TAKEN = frozenset((_ROOT, "agent"))  # by the root cgroup, and by cgotel itself


def plugin_instance(entity: Entity) -> str:
    """The host has none; a cgroup has its name, everything else its kind and key."""
    path = path_of(entity)
    if path is not None:
        return _cgroup(entity, path)
    if entity.kind == "host":
        return ""
    return "agent" if entity.kind == "agent" else fitting(f"{entity.kind}-{entity.key}")


def fitting(name: str, whole: str | None = None) -> str:
    """A part of an identifier; ``whole`` is what tells it from all others, if ``name`` does not."""
    plain = "".join(c if c.isprintable() else "?" for c in name.strip("/"))
    changed = plain.replace("/", _SEPARATOR)
    if whole is None and (plain != name.strip("/") or _SEPARATOR in plain):
        whole = name
    if whole is None and len(changed.encode()) <= MOST_BYTES:
        return changed
    digits = hashlib.sha256((name if whole is None else whole).encode("utf-8", "backslashreplace"))
    room = MOST_BYTES - _HASH_DIGITS - 1
    return f"{_cut(changed, room)}-{digits.hexdigest()[:_HASH_DIGITS]}"


def _cgroup(entity: Entity, path: str) -> str:
    if path == "/":
        return _ROOT
    name = name_of(entity, path)
    known = name == path or "container.id" in entity.attributes or entity.kind == "pod"
    if (known or _is_only_one(name, path)) and name.strip("/") not in _TAKEN:
        return fitting(name)
    return fitting(name, path)


def _is_only_one(unit: str, path: str) -> bool:
    """Whether the system's own service manager runs this unit: it has one of a name, in its slices."""
    segments = path.strip("/").split("/")
    first = unit.partition("/")[0]
    above = segments[: segments.index(first)] if first in segments else [path]
    return all(segment.endswith(".slice") for segment in above)


def _cut(text: str, room: int) -> str:
    return text.encode("utf-8", "backslashreplace")[:room].decode("utf-8", "ignore")
