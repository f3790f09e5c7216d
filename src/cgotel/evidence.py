"""What witnesses say: dated facts about one process, one cgroup or one workload, each with its source.

A watcher turns what the kernel, a runtime or a driver says into these words and judges nothing; the
rules of `cgotel.restarts` judge and see nothing else. Every kind can be written as JSON and read
back, so that a verdict can be replayed from a file.

Times are Unix times in nanoseconds; ``uncertainty_ns`` says how far the stamp may be off either
way. A field that the witness did not tell is None or empty, never 0. Paths of cgroups start at the
cgroup root (``/system.slice/docker-ID.scope``). Text that a container may have chosen (names, comm,
commands) is kept as it came: whoever shows it makes it harmless.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, TypeAlias

import msgspec

_HUMP = re.compile(r"(?<!^)(?=[A-Z])")


def _kind(name: str) -> str:
    return _HUMP.sub("_", name).lower()


class Evidence(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True,
    tag=_kind, tag_field="kind",
):  # fmt: skip
    """One dated fact. ``source`` is the watcher's name (``kernel_log``, ``signals``, ``docker``, ...)."""

    source: str
    time_ns: int
    uncertainty_ns: int = 0
    cgroup: str | None = None


class Workload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What restarts: a container, a unit, or a plain cgroup where no runtime speaks for it.

    ``runtime`` is ``docker``, ``podman``, ``containerd``, ``cri``, ``systemd`` or ``cgroup``; ``id`` is
    the runtime's own (64 hex digits, a unit's name, a path), new for each container made anew;
    ``name`` stays the same over redeployments. ``pid`` is the main process, as the host counts.
    """

    runtime: str
    id: str
    name: str = ""
    cgroup: str | None = None
    pid: int | None = None
    image: str = ""
    image_id: str = ""
    pod: str = ""
    namespace: str = ""

    @property
    def key(self) -> str:
        """One string that tells this workload from all others."""
        return f"{self.runtime}:{self.id}"

    @property
    def title(self) -> str:
        """What people call it."""
        return self.name or self.id


# The kernel log


class OomKill(Evidence, frozen=True, kw_only=True):
    """The kernel's OOM killer ended one process (mm/oom_kill.c).

    ``cgroup`` is where the victim lived (``task_memcg``), or the group's where ``group`` is set and it
    may have lived below; ``limit_cgroup`` whose limit was hit (``oom_memcg``), None for a kill by the
    host's own lack. Both are None where the log did not say: ``constraint`` tells these two apart.
    ``pid`` and ``comm`` are the victim's, ``trigger_*`` those of the task that asked for memory.
    ``group``: ended because of ``memory.oom.group``. ``requested``: somebody asked for it by sysrq.
    Sizes are in bytes.
    """

    pid: int
    comm: str = ""
    constraint: Literal["memcg", "none", "cpuset", "memory_policy", "unknown"] = "unknown"
    limit_cgroup: str | None = None
    trigger_pid: int | None = None
    trigger_comm: str = ""
    group: bool = False
    requested: bool = False
    usage: int | None = None
    limit: int | None = None
    anon_rss: int | None = None
    file_rss: int | None = None
    shmem_rss: int | None = None
    oom_score_adj: int | None = None


class ForkRejected(Evidence, frozen=True, kw_only=True):
    """A fork was refused by ``pids.max``: told once in the life of a cgroup (kernel/cgroup/pids.c)."""


class Fault(Evidence, frozen=True, kw_only=True):
    """A process took a signal for what it did: a segfault or a trap (arch/x86/mm/fault.c, traps.c)."""

    pid: int
    comm: str = ""
    what: str = ""


class HungTask(Evidence, frozen=True, kw_only=True):
    """A task did not run for so many seconds while it waited for the kernel (kernel/hung_task.c)."""

    pid: int
    comm: str = ""
    seconds: int


class GpuXid(Evidence, frozen=True, kw_only=True):
    """An error that the NVIDIA driver reported under an Xid number.

    ``pid`` is the process that made the channel, which is not always the offender; None where the
    whole device is meant. ``device`` is the PCI address (``0000:65:00``).
    """

    xid: int
    device: str
    pid: int | None = None
    comm: str = ""
    text: str = ""


# Tracepoints


class Signal(Evidence, frozen=True, kw_only=True):
    """A signal was sent (tracepoint signal:signal_generate). ``cgroup`` is the target's, if known.

    ``code`` is ``si_code``: 0 from kill(2), -6 from tgkill(2), 128 from the kernel. ``result`` is 0
    where it was delivered, 1 where the target ignores it. ``sender_parent`` is the comm of the
    sender's parent, ``sender_cgroup`` the sender's cgroup, each empty where it was gone already.
    """

    signal: int
    code: int
    pid: int
    comm: str = ""
    sender_pid: int
    sender_comm: str = ""
    sender_parent: str = ""
    sender_cgroup: str = ""
    result: int = 0


class OomMark(Evidence, frozen=True, kw_only=True):
    """The kernel chose a process to be ended for memory (tracepoint oom:mark_victim)."""

    pid: int
    comm: str = ""


# Processes


class ProcessExit(Evidence, frozen=True, kw_only=True):
    """A process ended (proc connector). Of ``code`` and ``signal`` the one that ended it is set.

    ``signal`` 9 is a true SIGKILL; a shell that reports its child's death has ``code`` 137.
    ``peak_rss`` in bytes (taskstats), ``began_ns`` the start of the process, where known.
    """

    pid: int
    comm: str = ""
    parent_pid: int | None = None
    code: int | None = None
    signal: int | None = None
    core: bool = False
    began_ns: int | None = None
    peak_rss: int | None = None


# Files of a cgroup


class MemoryEvents(Evidence, frozen=True, kw_only=True):
    """What ``memory.events`` counted more than at the last look at ``since_ns``.

    ``local``: from ``memory.events.local``, which leaves out what happened below. Only keys that
    rose are there; none at all, told when the last process ended: nothing was counted from
    ``since_ns`` to the end. ``final``: the cgroup is gone, this is the last that is known of it.
    """

    rose: dict[str, int]
    since_ns: int
    local: bool = False
    final: bool = False


class PidsEvents(Evidence, frozen=True, kw_only=True):
    """``pids.events`` counted so many more refused forks than at the last look at ``since_ns``.

    ``of_limit``: counted where the limit was hit, and in all cgroups above it, as Linux 6.11 and later
    do; ``local`` are then those that this cgroup's own limit refused. Otherwise they are counted where
    the fork was tried, whoever's limit it was.
    """

    refused: int
    since_ns: int
    of_limit: bool = False
    local: bool = False


class CgroupEmptied(Evidence, frozen=True, kw_only=True):
    """The last process of a cgroup ended (``cgroup.events``: populated 0), or the cgroup is gone."""

    removed: bool = False


# Runtimes and supervisors


class RunStarted(Evidence, frozen=True, kw_only=True):
    """A run of a workload began. ``restart_count`` as the runtime counts, None if it does not."""

    workload: Workload
    restart_count: int | None = None


class RunEnded(Evidence, frozen=True, kw_only=True):
    """A run of a workload ended, or could not begin (``started`` False); ``time_ns`` is its end.

    ``code`` is the runtime's exit code, where 128+N may mean signal N; ``signal`` is set where the
    supervisor knows that a signal ended the main process. ``error`` is the runtime's own text.
    """

    workload: Workload
    began_ns: int | None = None
    code: int | None = None
    signal: int | None = None
    started: bool = True
    error: str = ""


class RuntimeAction(Evidence, frozen=True, kw_only=True):
    """A supervisor did something to a workload: Docker's words (``kill``, ``stop``, ``oom``, ...).

    ``signal`` belongs to ``kill``. ``reason`` is the supervisor's own (``Unhealthy``).
    """

    workload: Workload
    action: str
    signal: int | None = None
    reason: str = ""


class RuntimeState(Evidence, frozen=True, kw_only=True):
    """What a runtime says of an ended run when asked (``docker inspect``). A witness, no verdict.

    ``reason`` and ``error`` are its words (``OOMKilled``); ``restart_policy`` as it is named there.
    ``stop_requested``: somebody asked the runtime to end it.
    """

    workload: Workload
    code: int | None = None
    oom_killed: bool | None = None
    reason: str = ""
    error: str = ""
    restart_count: int | None = None
    restart_policy: str = ""
    stop_requested: bool | None = None
    health: str = ""


class UnitResult(Evidence, frozen=True, kw_only=True):
    """systemd's account of a run: properties Result, ExecMainCode and -Status, NRestarts, OOMPolicy.

    ``job`` is the kind of the last job that touched the unit (``stop``, ``restart``), if there was one.
    """

    workload: Workload
    result: str
    code: int | None = None
    signal: int | None = None
    restarts: int | None = None
    oom_policy: str = ""
    job: str = ""


class ProbeResult(Evidence, frozen=True, kw_only=True):
    """One health probe. ``latency_s`` in seconds; ``failures`` in a row, this one included.

    ``probe`` is its name, and ``threshold`` the failures in a row from which on it is meant to be taken
    for unhealthy, where they are known.
    """

    workload: Workload
    ok: bool
    latency_s: float | None = None
    failures: int | None = None
    text: str = ""
    probe: str = ""
    threshold: int | None = None


class UserspaceOom(Evidence, frozen=True, kw_only=True):
    """A daemon says that it ended something for memory: systemd-oomd, earlyoom, nohang, ...

    About ``cgroup`` or about ``pid``.
    """

    by: str
    pid: int | None = None
    reason: str = ""


# The state around an exit


class MemoryUse(Evidence, frozen=True, kw_only=True):
    """Memory of one cgroup at one instant, in bytes; ``limits`` by file, of itself only (no ``max``).

    ``effective_limit`` is the narrowest in force and ``limit_cgroup`` its owner; ``full_avg10`` is
    the share of time in which all tasks waited for memory (0 to 1).
    """

    current: int | None = None
    peak: int | None = None
    limits: dict[str, int] = {}
    effective_limit: int | None = None
    limit_cgroup: str | None = None
    some_avg10: float | None = None
    full_avg10: float | None = None


class HostMemory(Evidence, frozen=True, kw_only=True):
    """Memory of the host, in bytes (/proc/meminfo), and its pressure (0 to 1)."""

    total: int | None = None
    available: int | None = None
    swap_total: int | None = None
    swap_free: int | None = None
    full_avg10: float | None = None


class GpuMemory(Evidence, frozen=True, kw_only=True):
    """Memory of one GPU, in bytes: all of it, what was used, what this workload used of that."""

    device: str
    total: int
    used: int
    own: int | None = None
    largest_other: int | None = None


class GpuState(Evidence, frozen=True, kw_only=True):
    """A GPU is lost, needs a reset, or has uncorrectable memory errors: ``state`` says which."""

    device: str
    state: Literal["lost", "reset_required", "ecc"]
    text: str = ""


class LastWords(Evidence, frozen=True, kw_only=True):
    """The end of a workload's log matches a known pattern; ``text`` only where configured.

    ``meaning`` is the pattern's class: ``gpu_memory``, ``host_memory``, ``heap``, ``gpu_fault``,
    ``pids``, ``supervisor`` or ``start``.
    """

    workload: Workload
    pattern: str
    meaning: str = ""
    text: str = ""


class HostState(Evidence, frozen=True, kw_only=True):
    """The host itself: it boots, shuts down, is put to sleep, wakes up."""

    state: Literal["boot", "shutdown", "suspend", "resume"]


class Gap(Evidence, frozen=True, kw_only=True):
    """``source`` saw nothing from ``since_ns`` to ``time_ns``: records were lost, or nobody looked."""

    since_ns: int
    reason: str


AnyEvidence: TypeAlias = (
    OomKill | ForkRejected | Fault | HungTask | GpuXid
    | Signal | OomMark
    | ProcessExit
    | MemoryEvents | PidsEvents | CgroupEmptied
    | RunStarted | RunEnded | RuntimeAction | RuntimeState | UnitResult | ProbeResult | UserspaceOom
    | MemoryUse | HostMemory | GpuMemory | GpuState | LastWords | HostState | Gap
)  # fmt: skip
"""Every kind there is: what a replay file is read as."""

Silences: TypeAlias = Mapping[str, str]
"""Sources that could not see, by name, each with the reason."""
