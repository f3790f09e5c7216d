"""What a cgroup is, told by its path alone: container, pod, unit, machine, job."""

from cgotel.identity.facts import ATTRIBUTES, KINDS, Identity, Kind
from cgotel.identity.resolve import identify

__all__ = ["ATTRIBUTES", "KINDS", "Identity", "Kind", "identify"]
