"""Which cgroup version is mounted, and what stays on the old one."""

from __future__ import annotations

from collections.abc import Iterator

from cgotel.doctor.facts import CONTROLLERS, Facts
from cgotel.doctor.finding import Finding, Level

CHECK = "hierarchy"


def check(facts: Facts) -> Iterator[Finding]:
    """No cgroup v2, a hybrid mount, or all well."""
    mount = facts.roots.cgroup
    on_v1 = [name for name in CONTROLLERS if name in facts.hierarchy.v1 and name in facts.missing]
    if mount is None:
        yield Finding(
            CHECK,
            Level.LOST,
            "no cgroup v2 hierarchy is mounted: no cgroup can be read",
            "boot with systemd.unified_cgroup_hierarchy=1; in a container mount the host's "
            "/sys/fs/cgroup and set HOST_CGROUP to where",
        )
    elif on_v1:
        yield Finding(
            CHECK,
            Level.LOST,
            f"hybrid mount: {', '.join(on_v1)} are on cgroup v1; cgroup v2 at {mount} is left with "
            "cpu.stat and pressure",
            "boot with systemd.unified_cgroup_hierarchy=1 (without systemd: cgroup_no_v1=all)",
        )
    else:
        yield Finding(CHECK, Level.OK, f"cgroup v2 at {mount}")
