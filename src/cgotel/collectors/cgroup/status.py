"""Which of a cgroup's files can be read here, and for those that cannot: why, and what to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from cgotel.collectors.cgroup.member import Member
from cgotel.contract import SourceStatus, State
from cgotel.kernel.files import read_once
from cgotel.kernel.roots import Roots
from cgotel.kernel.source import state_of

# Worst first: a file that is denied in one cgroup is not "ok" because another one can be read.
_BY_WEIGHT = (
    State.FAILED,
    State.DENIED,
    State.MASKED,
    State.OFF,
    State.OK,
    State.GONE,
    State.ABSENT,
)

# admin-guide/cgroup-v2.rst and the commits that brought the files
_SINCE = {
    "memory.peak": "Linux 5.19",
    "memory.zswap.current": "Linux 5.19 with zswap",
    "memory.zswap.max": "Linux 5.19 with zswap",
    "pids.peak": "Linux 6.1",
    "irq.pressure": "Linux 6.1 with IRQ time accounting",
    "memory.swap.peak": "Linux 6.5",
    "cpu.stat.local": "Linux 6.6",
    "pids.events.local": "Linux 6.11",
    "misc.peak": "Linux 6.12",
    "dmem.current": "Linux 6.14",
    "dmem.max": "Linux 6.14",
    "dmem.capacity": "Linux 6.14",
    "cgroup.stat.local": "Linux 6.18",
}

_REMEDIES = {
    State.DENIED: "run as root, or give the agent's user read access to the cgroup",
    State.MASKED: "bind-mount the host's /sys/fs/cgroup into the container, read-only",
}

_CORE = (
    "cpu.stat",
    "cpu.stat.local",
    "cpu.pressure",
    "memory.pressure",
    "io.pressure",
    "irq.pressure",
)


def statuses(
    members: Iterable[Member], unopened: Mapping[str, OSError], roots: Roots
) -> Iterator[SourceStatus]:
    """One status a file over all cgroups, and one for the cgroups that could not be opened or listed."""
    controllers = _controllers(roots)
    tally, reasons = _tally(members)
    for name in {name: None for counts in tally.values() for name in counts}:
        state = next(state for state in _BY_WEIGHT if tally[state][name])
        total = sum(counts[name] for counts in tally.values())
        if state is State.ABSENT:
            yield _absent(name, controllers, roots, alone=total == 1)
        else:
            where = f"{reasons.get((name, state), '')} in {tally[state][name]} of {total} cgroups"
            yield _status(name, state, where)
    if unopened:
        path, error = next(iter(unopened.items()))
        where = f"{error.strerror}: {len(unopened)} could not be opened, {path} among them"
        yield _status("cgroups", state_of(error), where)


def _tally(
    members: Iterable[Member],
) -> tuple[dict[State, Counter[str]], dict[tuple[str, State], str]]:
    """How many cgroups' files of each name are in each state, and a reason for those that are silent.

    Nearly all are there or are not, and are counted without a look at each: this is done after every
    sweep.
    """
    tally: dict[State, Counter[str]] = {state: Counter() for state in State}
    reasons: dict[tuple[str, State], str] = {}
    ok, absent = State.OK, State.ABSENT
    for member in members:
        files = member.sources
        tally[ok].update([file.name for file in files if file.state is ok])
        tally[absent].update([file.name for file in files if file.state is absent])
        for file in [file for file in files if file.state is not ok and file.state is not absent]:
            tally[file.state][file.name] += 1
            reasons.setdefault((file.name, file.state), file.reason)
    return tally, reasons


def _status(name: str, state: State, where: str) -> SourceStatus:
    if state is State.OK:
        return SourceStatus(name, state)
    if state is State.OFF and name.endswith(".pressure"):
        return SourceStatus(name, state, "PSI is off", "boot with psi=1; write 1 to cgroup.pressure")
    return SourceStatus(name, state, where, _REMEDIES.get(state, ""))


def _absent(file: str, controllers: frozenset[str], roots: Roots, alone: bool) -> SourceStatus:
    """Why no cgroup has a file; ``alone``: there is none but the root, which has few of them."""
    controller = file.partition(".")[0]
    if file.endswith(".pressure") and file != "irq.pressure":
        return _because(file, "this kernel has no PSI, or it is off", "boot with psi=1")
    if file in _CORE or controller == "cgroup" or controller in controllers:
        if alone and file not in _CORE:
            return _because(file, "only cgroups below the root have it, and there is none")
        if file in _SINCE:
            return _because(file, f"needs {_SINCE[file]}")
        return _because(
            file,
            "its controller is enabled nowhere below the root",
            f"write +{controller} to cgroup.subtree_control, or let systemd account for it",
        )
    if roots.hybrid:
        return _because(
            file,
            "its controller is not on cgroup v2: hybrid mount",
            "boot with systemd.unified_cgroup_hierarchy=1 (cgroup_no_v1=all)",
        )
    return _because(
        file,
        "its controller is not available to cgroup v2 here",
        f"a kernel with {controller}, not cgroup_disable={controller}",
    )


def _because(file: str, reason: str, remedy: str = "") -> SourceStatus:
    return SourceStatus(file, State.ABSENT, reason, remedy)


def _controllers(roots: Roots) -> frozenset[str]:
    try:
        return frozenset(read_once(f"{roots.cgroup}/cgroup.controllers").decode("ascii", "replace").split())
    except OSError:
        return frozenset()
