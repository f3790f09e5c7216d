"""Which limit is in force for a workload, who sets it, and how hard it is pressed.

Give it a unit (`nginx.service`), a container's id or how it begins (`4f2a91c0d7e3`), or a path from
the cgroup root (`/system.slice`); without one it tells of the root.
"""

import sys

import cgotel

LIMIT = "cgroup.memory.effective_limit"


def main(name: str) -> None:
    workload = cgotel.read(name)
    limit = workload.metric(LIMIT)
    owner = workload.attribute(LIMIT, "cgroup.limit.owner")
    left = workload.metric("cgroup.memory.headroom")
    stalled = workload.metric("cgroup.memory.pressure.time", system_linux_pressure_stall_type="full")
    print(f"memory limit in force: {limit} bytes, set by {owner}")
    print(f"left of it: {left} bytes")
    print(f"stalled on memory since it began: {stalled} s")


if __name__ == "__main__":
    try:
        main(sys.argv[1] if len(sys.argv) > 1 else "/")
    except (LookupError, cgotel.Unavailable) as error:
        sys.exit(str(error))
