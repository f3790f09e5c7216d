"""Ended for memory: by the kernel at a limit, by the kernel for the host's sake, by a daemon.

137 alone proves nothing, a runtime's OOM flag is wrong in both directions, and a counter that rose
may mean a child. So the kernel's own word on the main process is needed to confirm.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from cgotel.evidence import (
    HostMemory,
    LastWords,
    MemoryUse,
    OomKill,
    RuntimeState,
    Signal,
    UserspaceOom,
)
from cgotel.restarts.amounts import amount, margin
from cgotel.restarts.facts import SIGKILL, Facts
from cgotel.restarts.rule import Rule, found
from cgotel.restarts.verdict import Finding

_DAEMONS = frozenset(("systemd-oomd", "earlyoom", "nohang", "oomd"))
_DAEMON_BEFORE_S = 30.0
_KERNEL = ("kernel_log", "signals")
_WITNESSES = ("kernel_log", "signals", "cgroup_events", "processes")


def _at_limit(kill: OomKill) -> bool:
    return kill.constraint == "memcg"


def _decisive(facts: Facts) -> OomKill | None:
    """The kernel's record on the main process."""
    return facts.oom_kills_of_main[-1] if facts.oom_kills_of_main else None


def killed_at_limit(facts: Facts) -> Sequence[Finding]:
    """The kernel log says that the main process was ended at a memory limit."""
    kill = _decisive(facts)
    if kill is None or not _at_limit(kill) or kill.requested:
        return []
    where = f" at the limit of {kill.limit_cgroup}" if kill.limit_cgroup else " at a memory limit"
    group = ", with its whole group (memory.oom.group)" if kill.group else ""
    return [found(kill, f"the kernel's OOM killer ended {_name(kill)}{where}{group}")]


def killed_by_host(facts: Facts) -> Sequence[Finding]:
    """The kernel log says that the main process was ended because the host had no memory left."""
    kill = _decisive(facts)
    if kill is None or kill.requested or kill.constraint in ("memcg", "unknown"):
        return []
    what = {
        "none": "the host had no memory left",
        "cpuset": "the NUMA nodes of its cpuset were full",
        "memory_policy": "the NUMA nodes of its memory policy were full",
    }[kill.constraint]
    return [found(kill, f"the kernel's OOM killer ended {_name(kill)}: {what}")]


def killed_on_request(facts: Facts) -> Sequence[Finding]:
    """Somebody asked the kernel's OOM killer to act (sysrq-f)."""
    return [
        found(k, f"the OOM killer was called by sysrq and took {_name(k)}")
        for k in facts.oom_kills_of_main
        if k.requested
    ]


def marked(facts: Facts) -> Sequence[Finding]:
    """The tracepoints say that the kernel chose the main process and sent it SIGKILL."""
    return [
        found(mark, f"the kernel marked the main process ({mark.pid}) as OOM victim")
        for mark in facts.main_marked
    ]


def counted_here(facts: Facts) -> Sequence[Finding]:
    """``oom_kill`` rose in the workload's cgroup."""
    return [found(e, f"oom_kill of {e.cgroup} rose by {e.rose['oom_kill']}") for e in facts.counted_kills]


def counted_at_limit(facts: Facts) -> Sequence[Finding]:
    """``oom`` rose where a limit was hit: its own, or an ancestor's."""
    return [found(e, f"oom of {e.cgroup} rose by {e.rose['oom']}") for e in facts.counted_limits]


def no_limit_counted(facts: Facts) -> Sequence[Finding]:
    """A process was OOM-killed here, and no limit of its own or of an ancestor failed meanwhile."""
    if facts.counted_limits or facts.silent("cgroup_events") is not None:
        return []
    return [
        found(e, "no memory limit on the way to the root failed (oom stood still)")
        for e in facts.counted_kills[:1]
    ]


def killed(facts: Facts) -> Sequence[Finding]:
    """SIGKILL truly ended the main process."""
    if facts.main_exit is not None and facts.killed:
        return [found(facts.main_exit, f"SIGKILL ended the main process ({facts.main_exit.pid})")]
    if facts.unit is not None and facts.unit.signal == SIGKILL:
        return [found(facts.unit, "systemd saw SIGKILL end the main process")]
    return []


def may_be_killed(facts: Facts) -> Sequence[Finding]:
    """SIGKILL ended it, or the reported code allows for that."""
    if seen := killed(facts):
        return seen
    if facts.may_have_ended_by(SIGKILL) and facts.reported_signal == SIGKILL:
        return [Finding("the runtime reports 137, which may be SIGKILL", "runtime", facts.end_ns)]
    return []


def ended_otherwise(facts: Facts) -> Sequence[Finding]:
    """The main process is known to have ended in another way than by SIGKILL."""
    if facts.signal is not None and facts.signal != SIGKILL:
        return [Finding(f"the main process ended by signal {facts.signal}", "processes", facts.end_ns)]
    if facts.code is not None:
        return [Finding(f"the main process ended itself with {facts.code}", "processes", facts.end_ns)]
    return []


def another_sender(facts: Facts) -> Sequence[Finding]:
    """A process, and not the kernel, is known to have sent the SIGKILL."""
    sent = facts.final_signal
    if sent is None or sent.signal != SIGKILL or facts.kernel_signals:
        return []
    return [found(sent, f"{sent.sender_comm or sent.sender_pid} sent the SIGKILL")]


def runtime_says_oom(facts: Facts) -> Sequence[Finding]:
    """The runtime's flag: counted among the evidence, never enough."""
    states = facts.all(RuntimeState, lambda e: e.oom_killed is True)
    results = [facts.unit] if facts.unit is not None and facts.unit.result == "oom-kill" else []
    return [
        *(found(e, "the runtime says OOMKilled") for e in states),
        *(found(e, "systemd says Result=oom-kill") for e in results),
    ]


def host_was_full(facts: Facts) -> Sequence[Finding]:
    """The host had next to nothing available."""
    low = facts.near_end(
        HostMemory,
        lambda e: e.available is not None and e.total is not None and e.available < e.total * 0.05,
        60,
        5,
    )
    return [found(e, f"the host had {amount(e.available)} available") for e in low[-1:]]


def stopped_for_member(facts: Facts) -> Sequence[Finding]:
    """systemd ended the unit because one of its processes was OOM-killed (OOMPolicy=stop or kill)."""
    unit = facts.unit
    if unit is None or unit.result != "oom-kill" or unit.oom_policy == "continue":
        return []
    policy = unit.oom_policy or "stop"
    return [found(unit, f"systemd ended the unit: a process of it was OOM-killed (OOMPolicy={policy})")]


def member_killed_at_limit(facts: Facts) -> Sequence[Finding]:
    """A process of this workload was OOM-killed at a limit at the very end of the run."""
    return [
        found(
            kill,
            f"the kernel's OOM killer ended {_name(kill)} of it at the limit of {kill.limit_cgroup}",
        )
        for kill in facts.oom_kills
        if _at_limit(kill) and not kill.requested and facts.is_near(kill, 100)
    ]


def child_killed_and_told(facts: Facts) -> Sequence[Finding]:
    """The main process ended with 137, as a shell does whose child was killed; and one was, for memory."""
    if facts.code != 128 + SIGKILL:
        return []
    return [
        found(kill, f"the kernel's OOM killer ended {_name(kill)}, and the main process passed its status on")
        for kill in facts.oom_kills
        if _at_limit(kill) and not kill.requested and facts.is_near(kill)
    ]


def by_daemon(facts: Facts) -> Sequence[Finding]:
    """A userspace OOM daemon says that it ended this, or was seen sending the signal."""
    return [
        *(
            found(e, f"{e.by} says that it ended it{': ' + e.reason if e.reason else ''}")
            for e in _told(facts)
        ),
        *(found(e, f"{e.sender_comm} sent signal {e.signal}") for e in _daemon_signals(facts)),
    ]


def near_a_limit(facts: Facts) -> Sequence[Finding]:
    """Just before, the cgroup whose limit is in force for it had used nearly all of that."""
    full = facts.near_end(
        MemoryUse,
        lambda e: (
            (facts.own(e.cgroup) or facts.above(e.cgroup))
            and e.current is not None
            and e.current >= 0.95 * e.limits.get("memory.max", 1 << 62)
        ),
        60,
        1,
    )
    return [
        found(e, f"{e.cgroup} used {amount(e.current)} of {amount(e.limits['memory.max'])}")
        for e in full[-1:]
    ]


def _told(facts: Facts) -> list[UserspaceOom]:
    return facts.near_end(
        UserspaceOom,
        lambda e: facts.own(e.cgroup) or facts.above(e.cgroup) or facts.is_main(e.pid),
        _DAEMON_BEFORE_S,
        5,
    )


def _daemon_signals(facts: Facts) -> list[Signal]:
    return [
        e
        for e in facts.signals_to_main
        if e.sender_comm in _DAEMONS and not facts.own(e.sender_cgroup) and facts.is_near(e, _DAEMON_BEFORE_S)
    ]


def _daemon(facts: Facts) -> str:
    names = [*(e.by for e in _told(facts)), *(e.sender_comm for e in _daemon_signals(facts))]
    return names[0] if names else ""


def _name(kill: OomKill) -> str:
    return f"{kill.comm or 'process'} ({kill.pid})"


def _limit_cgroup(facts: Facts) -> str:
    for kill in [*facts.oom_kills_of_main, *reversed(facts.oom_kills)]:
        if kill.limit_cgroup:
            return kill.limit_cgroup
    return next((e.cgroup for e in facts.counted_limits if e.cgroup), "")


def _because_limit(facts: Facts, victim: str = "it") -> str:
    owner = _limit_cgroup(facts)
    if not owner:
        return f"the kernel's OOM killer ended {victim} at a memory limit"
    whose = "its own limit" if owner == facts.workload.cgroup else f"the limit of {owner}"
    if owner != facts.workload.cgroup and facts.above(owner):
        whose += ", not its own"
    return f"the kernel's OOM killer ended {victim} at {whose}"


def _limit_and_peak(facts: Facts, owner: str) -> tuple[int | None, int | None]:
    """The limit that was hit and the most memory that was seen below it, in bytes."""
    limit: int | None = None
    peak: int | None = None
    for kill in facts.oom_kills:
        if kill.limit_cgroup == owner:
            limit, peak = kill.limit or limit, max(kill.usage or 0, peak or 0) or None
    for use in facts.all(MemoryUse, lambda e: e.cgroup == owner):
        limit = limit or use.limits.get("memory.max")
        peak = max(peak or 0, use.peak or 0, use.current or 0) or None
    return limit, peak


def _advice_limit(facts: Facts) -> str:
    owner = _limit_cgroup(facts)
    if not owner:
        return "find the narrowest memory.max on the way to the root, and compare it with memory.peak"
    limit, peak = _limit_and_peak(facts, owner)
    hit = f"memory.max of {owner}" + (f" is {amount(limit)}" if limit else "")
    if owner != facts.workload.cgroup and facts.above(owner):
        return f"{hit}: raise it, or move a neighbour out of it; the workload's own limit was not reached"
    if limit is None or peak is None:
        return f"{hit}: raise it above what the workload needs at its peak, or make the workload need less"
    return (
        f"{hit}, and it was all used: try {amount(margin(max(limit, peak)))} "
        "(a quarter above), or make the workload need less"
    )


def _advice_host(facts: Facts) -> str:
    swap = facts.near_end(HostMemory, lambda e: e.swap_total is not None, 600, 60)
    largest = max(
        facts.near_end(MemoryUse, lambda e: e.current is not None and e.cgroup not in ("/", None), 600, 60),
        key=lambda e: e.current or 0,
        default=None,
    )
    parts = ["no limit of its own was hit: the host ran out"]
    if largest is not None:
        parts.append(
            f"the largest cgroup seen, {largest.cgroup}, used {amount(largest.current)}: give it a memory.max"
        )
    else:
        parts.append("give the largest workloads a memory.max")
    if swap and not swap[-1].swap_total:
        parts.append("there is no swap to fall back on")
    return "; ".join(parts)


def _contributing(facts: Facts) -> Sequence[str]:
    if facts.near_end(LastWords, lambda e: e.meaning == "gpu_memory", 60, 60):
        return ["its last words speak of GPU memory; the kernel's record is about host memory"]
    return []


def _asked_to_end(facts: Facts) -> Sequence[Finding]:
    """The runtime sent it a signal near the end: a counter alone does not outweigh that."""
    return [
        found(e, f"the runtime was told to send signal {e.signal}")
        for e in facts.actions
        if e.action == "kill" and facts.is_near(e, 15)
    ]


_at_a_limit = partial(
    Rule,
    cause="cgroup_oom",
    word_of=_KERNEL,
    witnesses=_WITNESSES,
    because=_because_limit,
    by=lambda _: "kernel",
    limit_cgroup=_limit_cgroup,
    advice=_advice_limit,
)

RULES = (
    _at_a_limit(
        name="the kernel named the main process at a limit",
        rank=100,
        needs=(killed_at_limit,),
        supports=(marked, counted_here, counted_at_limit, killed, runtime_says_oom),
        contradicts=(ended_otherwise, another_sender),
        contributing=_contributing,
    ),
    Rule(
        cause="global_oom",
        name="the kernel named the main process, for the host's sake",
        rank=110,
        needs=(killed_by_host,),
        supports=(marked, counted_here, killed, host_was_full, runtime_says_oom),
        contradicts=(ended_otherwise, another_sender),
        word_of=_KERNEL,
        witnesses=_WITNESSES,
        because=lambda _: "no memory limit was hit: the host ran out, and the kernel chose this victim",
        by=lambda _: "kernel",
        advice=_advice_host,
    ),
    Rule(
        cause="killed_externally",
        name="somebody called the OOM killer",
        rank=115,
        needs=(killed_on_request,),
        supports=(killed, marked),
        witnesses=_WITNESSES,
        because=lambda _: "somebody called the kernel's OOM killer by hand (sysrq-f); nothing had run out",
        by=lambda _: "sysrq",
        advice=lambda _: "find who writes to /proc/sysrq-trigger",
    ),
    Rule(
        cause="userspace_oom",
        name="a userspace OOM daemon ended it",
        rank=120,
        needs=(by_daemon,),
        supports=(killed, host_was_full),
        unless=(killed_at_limit, killed_by_host),
        witnesses=("signals", "systemd", "processes"),
        because=lambda facts: (
            f"{_daemon(facts)} ended it, to relieve the host or a slice; the kernel did not"
        ),
        by=_daemon,
        advice=lambda facts: (
            f"look at the thresholds of {_daemon(facts)} and at the pressure of the slice: "
            "the victim need not be the cause"
        ),
    ),
    _at_a_limit(
        name="systemd ended the unit after an OOM kill in it",
        rank=130,
        needs=(stopped_for_member, member_killed_at_limit),
        supports=(counted_here, counted_at_limit),
        because=lambda facts: f"{_because_limit(facts, 'a process of it')}, and systemd ended the rest",
        by=lambda _: "kernel, then systemd",
    ),
    _at_a_limit(
        name="a shell passed on the death of its OOM-killed child",
        rank=140,
        needs=(child_killed_and_told,),
        supports=(counted_here, counted_at_limit),
        because=lambda facts: f"{_because_limit(facts, 'its child')}, and the main process gave up",
    ),
    _at_a_limit(
        name="the tracepoints and the counters agree",
        rank=150,
        needs=(marked, counted_at_limit),
        supports=(counted_here, killed, runtime_says_oom),
        contradicts=(ended_otherwise, another_sender),
    ),
    _at_a_limit(
        name="the counters and the end agree",
        rank=160,
        needs=(counted_here, counted_at_limit, may_be_killed),
        supports=(runtime_says_oom, marked),
        unless=(ended_otherwise, another_sender, _asked_to_end),
    ),
    Rule(
        cause="global_oom",
        name="the counters say that no limit was hit",
        rank=170,
        needs=(counted_here, no_limit_counted, may_be_killed),
        supports=(marked, host_was_full, runtime_says_oom),
        unless=(ended_otherwise, another_sender, _asked_to_end),
        word_of=_KERNEL,
        witnesses=_WITNESSES,
        because=lambda _: "a process of it was OOM-killed and no limit failed: the host ran out",
        by=lambda _: "kernel",
        advice=_advice_host,
    ),
    _at_a_limit(
        name="the tracepoints speak, and a limit was full",
        rank=180,
        needs=(marked, near_a_limit),
        supports=(killed, counted_here),
        unless=(no_limit_counted,),
        contradicts=(ended_otherwise, another_sender, host_was_full),
        word_of=("kernel_log",),
    ),
    Rule(
        cause="global_oom",
        name="the tracepoints speak, and the host was full",
        rank=190,
        needs=(marked, host_was_full),
        supports=(killed, counted_here),
        contradicts=(ended_otherwise, another_sender, near_a_limit),
        word_of=("kernel_log",),
        witnesses=_WITNESSES,
        because=lambda _: "the kernel's OOM killer ended it while the host had next to no memory left",
        by=lambda _: "kernel",
        advice=_advice_host,
    ),
)
