"""Whose a GPU's memory is: from each process to its cgroup, and what no process accounts for."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass

from cgotel.identity.cgroups import cgroup_entity
from cgotel.kernel import tasks
from cgotel.model import Entity
from cgotel.nvml.gpus import Gpu, Process


@dataclass(frozen=True, slots=True)
class Shares:
    """Memory of one GPU by cgroup, in bytes; ``unmapped`` processes have no cgroup that is known.

    ``unattributed`` is what no process accounts for: None where one of them has an unknown amount.
    """

    by_cgroup: dict[str, int]
    unmapped: int
    unattributed: int | None


class Owners:
    """Remembers each process's cgroup, since a driver may list one that is gone already.

    A pid that was given to another process is told by when that began.
    """

    def __init__(self, proc: str, cgroup: str | None) -> None:
        self._proc = proc
        self._cgroup_root = cgroup
        self._known: dict[int, tuple[int | None, str]] = {}
        self._entities: dict[str, Entity] = {}

    def shares(self, gpu: Gpu, paths: dict[int, str | None]) -> Shares:
        """The memory of a GPU, or of a MIG instance, by the cgroups of its processes."""
        by_cgroup: dict[str, int] = {}
        unmapped = 0
        for process in gpu.processes or ():
            path = paths[process.pid]
            if path is None:
                unmapped += 1
            elif process.memory is not None:
                by_cgroup[path] = by_cgroup.get(path, 0) + process.memory
        return Shares(by_cgroup, unmapped, _unattributed(gpu))

    def paths(self, gpus: Iterable[Gpu]) -> dict[int, str | None]:
        """The cgroup of every process that holds memory; what is not listed any more is forgotten."""
        pids = {process.pid for gpu in gpus for process in gpu.processes or ()}
        self._known = {pid: known for pid, known in self._known.items() if pid in pids}
        return {pid: self._path(pid) for pid in pids}

    def entity(self, path: str) -> Entity | None:
        """The cgroup as the collector of cgroups tells it; None where it is gone and was never seen."""
        if self._cgroup_root is None:
            return None
        try:
            status = os.stat(f"{self._cgroup_root}{path}")
        except OSError:
            return self._entities.get(path)
        known = self._entities.get(path)
        if known is None or not known.key.endswith(f"@{status.st_ino}"):
            known = cgroup_entity(path, status.st_ino, status.st_ctime_ns)
            self._entities[path] = known
        return known

    def forget_all_but(self, paths: Iterable[str]) -> None:
        """Keep the entities of these cgroups only."""
        self._entities = {path: self._entities[path] for path in paths if path in self._entities}

    def _path(self, pid: int) -> str | None:
        began_ns = tasks.began_ns(self._proc, pid)
        path = tasks.cgroup(self._proc, pid)
        known = self._known.get(pid)
        if path is None or began_ns is None:
            return known[1] if known else None
        self._known[pid] = (began_ns, path)
        return path


def _unattributed(gpu: Gpu) -> int | None:
    used = gpu.figures.get("memory_used")
    if used is None or gpu.processes is None or any(p.memory is None for p in gpu.processes):
        return None
    return max(0, used - _sum(gpu.processes))


def _sum(processes: Iterable[Process]) -> int:
    return sum(process.memory or 0 for process in processes)
