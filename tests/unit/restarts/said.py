"""Short ways to say evidence in tests: seconds on a timeline that begins at `T0`."""

from __future__ import annotations

from cgotel.evidence import (
    CgroupEmptied,
    MemoryEvents,
    OomKill,
    ProcessExit,
    RunEnded,
    RunStarted,
    RuntimeAction,
    Signal,
    Workload,
)

SECOND = 1_000_000_000
T0 = 1_790_000_000 * SECOND
PID = 4242


def at(seconds: float) -> int:
    return T0 + int(seconds * SECOND)


def workload(number: int = 1, name: str = "model", image: str = "model:1", pid: int | None = PID) -> Workload:
    container = f"c0ffee{number:058d}"
    cgroup = f"/system.slice/docker-{container}.scope"
    return Workload(runtime="docker", id=container, name=name, cgroup=cgroup, pid=pid, image=image)


def started(seconds: float, of: Workload) -> RunStarted:
    return RunStarted(source="docker", time_ns=at(seconds), workload=of)


def ended(seconds: float, of: Workload, code: int | None = 137) -> RunEnded:
    return RunEnded(source="docker", time_ns=at(seconds), workload=of, code=code)


def action(seconds: float, of: Workload, what: str, signal: int | None = None) -> RuntimeAction:
    return RuntimeAction(source="docker", time_ns=at(seconds), workload=of, action=what, signal=signal)


def oom_kill(seconds: float, of: Workload, pid: int = PID, limit: str | None = None) -> OomKill:
    return OomKill(
        source="kernel_log",
        time_ns=at(seconds),
        cgroup=of.cgroup,
        pid=pid,
        comm="python3",
        constraint="memcg",
        limit_cgroup=limit or of.cgroup,
        limit=128 << 20,
        usage=128 << 20,
    )


def exited(
    seconds: float, cgroup: str | None, pid: int = PID, code: int | None = None, signal: int | None = None
) -> ProcessExit:
    return ProcessExit(
        source="processes", time_ns=at(seconds), cgroup=cgroup, pid=pid, code=code, signal=signal
    )


def killed_by(seconds: float, of: Workload, comm: str, number: int = 9, sender_cgroup: str = "") -> Signal:
    return Signal(
        source="signals",
        time_ns=at(seconds),
        cgroup=of.cgroup,
        signal=number,
        code=0,
        pid=of.pid or 0,
        sender_pid=99,
        sender_comm=comm,
        sender_cgroup=sender_cgroup,
    )


def rose(seconds: float, cgroup: str, **counts: int) -> MemoryEvents:
    return MemoryEvents(
        source="cgroup_events", time_ns=at(seconds), cgroup=cgroup, rose=counts, since_ns=at(seconds - 1)
    )


def emptied(seconds: float, cgroup: str, removed: bool = False) -> CgroupEmptied:
    return CgroupEmptied(source="cgroup_events", time_ns=at(seconds), cgroup=cgroup, removed=removed)
