"""Whether the agent sees the whole tree, or only the part that its container was given."""

from __future__ import annotations

from collections.abc import Iterator

from cgotel.doctor.facts import Facts
from cgotel.doctor.finding import Finding, Level

CHECK = "namespace"


def check(facts: Facts) -> Iterator[Finding]:
    """The root of a cgroup namespace has files that the real root has not (cgroup_namespaces(7))."""
    if facts.namespaced:
        yield Finding(
            CHECK,
            Level.LOST,
            "own cgroup namespace: only this container's part of the tree is seen, and no limit above it",
            "run it with --cgroupns=host and -v /sys/fs/cgroup:/sys/fs/cgroup:ro, or on the host",
        )
    elif facts.roots.cgroup is not None:
        yield Finding(CHECK, Level.OK, "sees the whole cgroup tree")
