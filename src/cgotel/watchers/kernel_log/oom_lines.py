"""The lines of an OOM kill, one by one, as Linux 3.10 to 6.18 print them (mm/oom_kill.c, mm/memcontrol.c).

Names of tasks (15 bytes) and of cgroups are whatever a container chose, commas, brackets and words of
these very lines among it. So a line is read from both ends, where the kernel alone writes, and what
could be read in two ways is not read at all.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple, TypeAlias

Constraint: TypeAlias = Literal["memcg", "none", "cpuset", "memory_policy", "unknown"]

_CONSTRAINTS: dict[str, Constraint] = {
    "CONSTRAINT_MEMCG": "memcg",
    "CONSTRAINT_NONE": "none",
    "CONSTRAINT_CPUSET": "cpuset",
    "CONSTRAINT_MEMORY_POLICY": "memory_policy",
}
_COMM = r"(.{0,15})"
_LONGEST_PATH = 900  # bytes; printk cuts a piece short at a little more, and says nothing of it
_UNLIMITED = 2**62  # PAGE_COUNTER_MAX in bytes is next to 2**63

_INVOKED = re.compile(rf"{_COMM} invoked oom-killer: gfp_mask=\S.*?, order=(-?\d+)", re.DOTALL)
_CPU = re.compile(r"CPU: \d+ (?:UID: \d+ )?PID: (\d+) Comm: (.*)", re.DOTALL)
_USAGE = re.compile(r"memory: usage (\d+)kB, limit (\d+)kB,")
_SUMMARY = re.compile(
    r"oom-kill:constraint=(CONSTRAINT_[A-Z_]+),nodemask=[^a-z=]*(?:\(null\))?,cpuset=(?:/|[^/]*),"
    r"mems_allowed=[0-9,-]*(,oom_memcg=|,global_oom)(.*),pid=(\d+),uid=(\d+)",
    re.DOTALL,
)
_TASK_IN = re.compile(r"Task in (.*)", re.DOTALL)
_CHOSEN = re.compile(r"(Memory cgroup o|O)ut of memory[^:]*: Kill process (\d+) ", re.DOTALL)
_KILLED = re.compile(
    r"(?:((?:Memory cgroup o|O)ut of memory)(?: \(oom_kill_allocating_task\))?: )?"
    rf"Killed process (\d+) \({_COMM}\),?(?: UID \d+,)? total-vm:\d+kB(.*)",
    re.DOTALL,
)
_SIZES = re.compile(
    r"(?:, anon-rss:(\d+)kB)?(?:, file-rss:(\d+)kB)?(?:, shmem-rss:(\d+)kB)?"
    r"(?:, UID:(\d+)(?: pgtables:\d+(?:kB)? oom_score_adj:(-?\d+))?)?"
)
_GROUP = re.compile(r"Tasks in (/.*) are going to be killed due to memory\.oom\.group set", re.DOTALL)
_SKIPPED = re.compile(r"(?:Memory cgroup o|O)ut of memory[^:]*: OOM victim (\d+) \(")


class Place(NamedTuple):
    """Where the victim lived and whose limit it was; None where that is not known."""

    cgroup: str | None
    limit_cgroup: str | None


NOWHERE = Place(None, None)


class Invoked(NamedTuple):
    """A report begins: this task asked for memory. ``requested``: it did not, somebody pressed sysrq-f."""

    comm: str
    requested: bool


class Usage(NamedTuple):
    """``memory: usage`` of the cgroup whose limit was hit, in bytes; ``limit`` None for unlimited."""

    usage: int
    limit: int | None


class Summary(NamedTuple):
    """``oom-kill:constraint=…`` (5.0 and later). ``where`` still holds both paths and the task's name."""

    constraint: Constraint
    where: str
    pid: int
    uid: int

    def place(self, comm: str) -> Place:
        """The two cgroups, given the victim's name; `NOWHERE` where they could be told in two ways."""
        place, task, rest = self.where.rpartition(f",task={comm}")
        if not task or rest:
            return NOWHERE
        limit, _, cgroup = place.partition(",task_memcg=")
        if self.constraint != "memcg":
            return Place(_path(cgroup), None) if not limit else NOWHERE
        return _one_below_the_other(place, ",task_memcg=")


class TaskIn(NamedTuple):
    """``Task in A killed as a result of limit of B`` (before 5.0): the place of the task chosen next."""

    place: Place


class Chosen(NamedTuple):
    """``Kill process P … or sacrifice child`` (before 5.1): the victim is P or a child of it."""

    pid: int
    memcg: bool


class Killed(NamedTuple):
    """``Killed process``: this one has been sent SIGKILL. Sizes in bytes.

    ``memcg``: whether it was for a cgroup's limit; None where the line does not say (before 5.1).
    """

    pid: int
    comm: str
    memcg: bool | None
    anon_rss: int | None
    file_rss: int | None
    shmem_rss: int | None
    uid: int | None
    oom_score_adj: int | None


class Group(NamedTuple):
    """All tasks of a cgroup and of those below it are killed next (memory.oom.group)."""

    cgroup: str | None


class Skipped(NamedTuple):
    """The chosen task was ending already and was not killed."""

    pid: int


def invoked(text: str) -> Invoked | None:
    """``T invoked oom-killer: gfp_mask=…, order=0, oom_score_adj=0``."""
    found = _INVOKED.match(text)
    return Invoked(found[1], int(found[2]) == -1) if found else None


def trigger_pid(text: str, comm: str) -> int | None:
    """The id of the task that prints its stack, if that bears the name ``comm``."""
    found = _CPU.fullmatch(text)
    if found is None or not re.match(r" (?:Not tainted|Tainted|Kdump)", found[2][len(comm) :]):
        return None
    return int(found[1]) if found[2].startswith(comm) else None


def usage(text: str) -> Usage | None:
    """``memory: usage 131072kB, limit 131072kB, failcnt 12000``."""
    found = _USAGE.match(text)
    if found is None:
        return None
    limit = int(found[2]) * 1024
    return Usage(int(found[1]) * 1024, limit if limit < _UNLIMITED else None)


def summary(text: str) -> Summary | None:
    """``oom-kill:constraint=CONSTRAINT_MEMCG,…,oom_memcg=/A,task_memcg=/A/B,task=T,pid=P,uid=U``."""
    found = _SUMMARY.fullmatch(text)
    if found is None or (constraint := _CONSTRAINTS.get(found[1])) is None:
        return None
    if (constraint == "memcg") != (found[2] == ",oom_memcg="):
        return None
    return Summary(constraint, found[3], int(found[4]), int(found[5]))


def task_in(text: str) -> TaskIn | None:
    """``Task in /A/B killed as a result of limit of /A``."""
    found = _TASK_IN.fullmatch(text)
    if found is None or " killed as a result of limit of " not in found[1]:
        return None
    cgroup_first = _one_below_the_other(found[1], " killed as a result of limit of ", below_first=True)
    return TaskIn(cgroup_first)


def chosen(text: str) -> Chosen | None:
    """``Memory cgroup out of memory: Kill process P (T) score N or sacrifice child``."""
    found = _CHOSEN.match(text)
    return Chosen(int(found[2]), found[1] != "O") if found else None


def killed(text: str) -> Killed | None:
    """``Memory cgroup out of memory: Killed process P (T) total-vm:1kB, anon-rss:1kB, …``."""
    found = _KILLED.fullmatch(text)
    if found is None:
        return None
    sizes = _SIZES.match(found[4])
    assert sizes is not None  # each part of it may be missing
    memcg = None if found[1] is None else found[1].startswith("Memory")
    anon, file, shmem, uid, adjusted = sizes.groups()
    return Killed(
        int(found[2]), found[3], memcg, _bytes(anon), _bytes(file), _bytes(shmem),
        None if uid is None else int(uid), None if adjusted is None else int(adjusted),
    )  # fmt: skip


def group(text: str) -> Group | None:
    """``Tasks in /A are going to be killed due to memory.oom.group set``."""
    found = _GROUP.fullmatch(text)
    return Group(_path(found[1])) if found else None


def skipped(text: str) -> Skipped | None:
    """``Memory cgroup out of memory: OOM victim P (T) is already exiting. Skip killing the task``."""
    found = _SKIPPED.match(text)
    return Skipped(int(found[1])) if found else None


def _one_below_the_other(text: str, between: str, below_first: bool = False) -> Place:
    """Two paths, of which one is the other's ancestor or itself; `NOWHERE` if that leaves a choice."""
    found = []
    at = text.find(between)
    while at >= 0:
        first, second = text[:at], text[at + len(between) :]
        cgroup, limit = (first, second) if below_first else (second, first)
        if limit.startswith("/") and cgroup.startswith("/") and _within(cgroup, limit):
            found.append(Place(_path(cgroup), _path(limit)))
        at = text.find(between, at + 1)
    return found[0] if len(found) == 1 else NOWHERE


def _within(cgroup: str, ancestor: str) -> bool:
    """Whether it is this ancestor or below; the root is none, for it has no limit."""
    return cgroup == ancestor or (ancestor != "/" and cgroup.startswith(f"{ancestor}/"))


def _path(text: str) -> str | None:
    return text if text.startswith("/") and len(text.encode()) < _LONGEST_PATH else None


def _bytes(kilobytes: str | None) -> int | None:
    return None if kilobytes is None else int(kilobytes) * 1024
