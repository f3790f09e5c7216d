"""Gathers the facts: one sweep by the configured collectors, and a look at what they stand on."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator

from cgotel.assemble import Assembly
from cgotel.clock import now
from cgotel.contract import SourceStatus, State, Timeline
from cgotel.doctor.facts import Cgroup, Descriptors, Facts, Hierarchy
from cgotel.kernel import procfs, zram
from cgotel.kernel.cgroupfs import CgroupDirectory, CgroupTree
from cgotel.kernel.files import read_once
from cgotel.kernel.source import state_of
from cgotel.model import Sweep
from cgotel.sweeper import Sweeper
from cgotel.watching import Watching

# names that a controller has on cgroup v1
_OF_V1 = {"blkio": "io"}


def gather(assembly: Assembly) -> Facts:
    """Everything that the checks look at. What cannot be read is left at its default."""
    roots = assembly.roots
    sweep, collectors, sources = _swept(assembly)
    cgroups = tuple(_cgroups(roots.cgroup)) if roots.cgroup is not None else ()
    files = [status for status in sources if status.state is State.OK]
    return Facts(
        roots=roots,
        kernel=os.uname().release,
        uid=os.geteuid(),
        cmdline=_text(f"{roots.proc}/cmdline").split(),
        hierarchy=_hierarchy(_text(f"{roots.proc}/cgroups")),
        cgroups=cgroups,
        namespaced=roots.cgroup is not None and os.path.exists(f"{roots.cgroup}/cgroup.type"),
        pressure=_state(f"{roots.proc}/pressure/cpu"),
        swaps=_swaps(f"{roots.proc}/swaps"),
        zram=zram.devices(roots.sys),
        descriptors=Descriptors(_hard_limit(), len(cgroups), _kept(assembly, len(cgroups) * len(files))),
        collectors=collectors,
        sources=sources,
        witnesses=_witnesses(assembly),
        readings=sweep.readings,
        faults={plugin.name: plugin.fault for plugin in assembly.registry.plugins if plugin.failed},
    )


def _swept(assembly: Assembly) -> tuple[Sweep, list[SourceStatus], list[SourceStatus]]:
    """A sweep, the state of each collector, and of each source behind them."""
    sweeper = Sweeper(assembly.collectors(), assembly.configuration.agent.max_series)
    try:
        sweep = sweeper.sweep(now())
        collectors = [_of_collector(running.status, running.faults.count) for running in sweeper.running]
        names = {status.name for status in collectors}
        return sweep, collectors, [status for status in sweeper.sources() if status.name not in names]
    finally:
        sweeper.close()


def _witnesses(assembly: Assembly) -> list[SourceStatus]:
    """The state of each watcher, after it was given a moment to begin."""
    if not assembly.configuration.restarts.enabled:
        return []
    watching = Watching(assembly.watchers(Timeline()), lambda evidence: None)
    watching.start()
    statuses = list(watching.sources())
    watching.close()
    return statuses


def _of_collector(status: SourceStatus, faults: int) -> SourceStatus:
    if status.state is State.OK and faults:
        return SourceStatus(status.name, State.FAILED, "it failed while it read; the log says how")
    return status


def _cgroups(mount: str) -> Iterator[Cgroup]:
    try:
        tree = CgroupTree(mount)
    except OSError:
        return
    try:
        tree.update()
        for directory in tree.walk():
            yield Cgroup(
                directory.path,
                frozenset(_words(directory, "cgroup.controllers")),
                frozenset(_words(directory, "cgroup.subtree_control")),
                bool(directory.children),
                {"0": False, "1": True}.get("".join(_words(directory, "cgroup.pressure"))),
            )
    finally:
        tree.close()


def _words(directory: CgroupDirectory, file: str) -> list[str]:
    return _text(file, directory.fd).split()


def _text(name: str, dir_fd: int | None = None) -> str:
    """A small file as text; empty where it cannot be read."""
    try:
        return read_once(name, dir_fd).decode("utf-8", "backslashreplace")
    except OSError:
        return ""


def _hierarchy(cgroups: str) -> Hierarchy:
    """/proc/cgroups: ``memory  4  30  1`` is a name, a v1 hierarchy (0: none), a count, whether enabled."""
    rows = [line.split() for line in cgroups.splitlines() if not line.startswith("#")]
    rows = [row for row in rows if len(row) == 4]
    return Hierarchy(
        frozenset(_OF_V1.get(name, name) for name, hierarchy, _, _ in rows if hierarchy != "0"),
        frozenset(_OF_V1.get(name, name) for name, _, _, enabled in rows if enabled == "0"),
    )


def _state(path: str) -> State:
    try:
        read_once(path)
    except OSError as error:
        return state_of(error)
    return State.OK


def _swaps(path: str) -> dict[str, procfs.Swap] | None:
    try:
        return procfs.swaps(read_once(path))
    except OSError:
        return None


def _hard_limit() -> int | None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if hard == resource.RLIM_INFINITY else hard


def _kept(assembly: Assembly, files: int) -> int:
    """As many as the cgroup collector is told to keep open at most."""
    settings = assembly.configuration.collectors.get("cgroup")
    return min(files, getattr(settings, "keep_open_files", files))
