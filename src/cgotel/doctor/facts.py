"""What the checks look at: gathered once, then only read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cgotel.contract import SourceStatus, State
from cgotel.kernel.procfs import Swap
from cgotel.kernel.roots import Roots
from cgotel.model import Reading

MAIN_CONTROLLERS = ("memory", "io", "cpu", "pids")
"""Those whose loss matters on any host."""

CONTROLLERS = (*MAIN_CONTROLLERS, "cpuset", "hugetlb", "rdma", "misc", "dmem")
"""Those of which cgotel reads files."""


@dataclass(frozen=True, slots=True)
class Cgroup:
    """A cgroup's core files: what it could pass on to its children, and what it does pass on.

    ``pressure`` is cgroup.pressure; None where there is no such file (before Linux 6.1, or no PSI).
    """

    path: str
    controllers: frozenset[str] = frozenset()
    subtree_control: frozenset[str] = frozenset()
    has_children: bool = False
    pressure: bool | None = None


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """The kernel's controllers by /proc/cgroups: attached to a v1 hierarchy, or disabled at boot."""

    v1: frozenset[str] = frozenset()
    disabled: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Descriptors:
    """Open files: the hard limit (None: no limit), and what is wanted of it.

    Each cgroup needs one for its directory; ``files`` more are kept open where there is room.
    """

    limit: int | None
    cgroups: int
    files: int


@dataclass(frozen=True, slots=True)
class Facts:
    """One host, as seen by one process at one moment."""

    roots: Roots
    kernel: str = ""
    uid: int = 0
    cmdline: Sequence[str] = ()
    hierarchy: Hierarchy = Hierarchy()
    cgroups: Sequence[Cgroup] = ()
    namespaced: bool = False
    pressure: State = State.OK
    swaps: Mapping[str, Swap] | None = None
    zram: Sequence[str] = ()
    descriptors: Descriptors = Descriptors(None, 0, 0)
    collectors: Sequence[SourceStatus] = ()
    sources: Sequence[SourceStatus] = ()
    witnesses: Sequence[SourceStatus] = ()
    readings: Sequence[Reading] = ()
    faults: Mapping[str, str] = field(default_factory=dict)

    @property
    def missing(self) -> tuple[str, ...]:
        """Controllers that cgroup v2 does not have here at all."""
        root = next((cgroup.controllers for cgroup in self.cgroups if cgroup.path == "/"), frozenset())
        return tuple(name for name in CONTROLLERS if name not in root)

    def withheld(self, controller: str) -> tuple[str, ...]:
        """Cgroups that have a controller and do not pass it on to their children."""
        return tuple(
            cgroup.path
            for cgroup in self.cgroups
            if cgroup.has_children
            and controller in cgroup.controllers
            and controller not in cgroup.subtree_control
        )
