"""A cgroup as an entity, the same for every collector that has something to say of it."""

from __future__ import annotations

from cgotel.identity.paths import text
from cgotel.identity.resolve import identify
from cgotel.model import Entity


def cgroup_entity(path: str, inode: int, began_ns: int | None) -> Entity:
    """The cgroup at ``path`` (from the cgroup root, as os.fsdecode() gives it), told by its inode."""
    identity = identify(path)
    shown = text(path)
    attributes = {**identity.attributes, "process.linux.cgroup": f"0::{shown}"}
    return Entity(identity.kind, f"{shown}@{inode}", attributes, began_ns)
