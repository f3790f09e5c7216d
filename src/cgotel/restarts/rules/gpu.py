"""Ended for a GPU: its memory was full, or the device or its driver failed.

Words of an allocator are one witness; the device's own figures are the other.
"""

from __future__ import annotations

from collections.abc import Sequence

from cgotel.evidence import GpuMemory, GpuState, GpuXid, LastWords
from cgotel.restarts.amounts import amount
from cgotel.restarts.facts import SECOND, SIGKILL, Facts
from cgotel.restarts.rule import Rule, found
from cgotel.restarts.rules.supervisor import stop_asked
from cgotel.restarts.verdict import Finding

_FULL = 0.9
_EMPTY = 0.5
_BEFORE_S = 60.0
_CONSEQUENCES = frozenset((43, 45))  # nverror.h: channel reset and removal follow a death, and cause none
_STATES = frozenset((63, 92, 151, 154, 155, 156, 157, 168))
_OF_APPLICATION = frozenset((13, 31, 68, 69, 109))
_OF_DEVICE = frozenset((48, 64, 74, 79, 95, 119, 120, 140, 143))  # whatever process they are told of
_SAME_S = 5


def words_of_gpu_memory(facts: Facts) -> Sequence[Finding]:
    """Its last words are those of an allocator that got no GPU memory."""
    return [
        found(e, f"its last words: {e.pattern}")
        for e in facts.near_end(LastWords, lambda e: e.meaning == "gpu_memory", _BEFORE_S, 60)
    ]


def gpu_full(facts: Facts) -> Sequence[Finding]:
    """A GPU's memory was nearly all used just before the end."""
    full = [e for e in _memory(facts) if e.used >= _FULL * e.total]
    return [found(e, f"GPU {e.device} used {amount(e.used)} of {amount(e.total)}") for e in full[-1:]]


def gpu_had_room(facts: Facts) -> Sequence[Finding]:
    """Every GPU that was looked at had more than half of its memory free."""
    seen = _memory(facts)
    if not seen or any(e.used >= _EMPTY * e.total for e in seen):
        return []
    return [found(e, f"GPU {e.device} used only {amount(e.used)} of {amount(e.total)}") for e in seen[-1:]]


def words_without_a_full_gpu(facts: Facts) -> Sequence[Finding]:
    """Words of full GPU memory that the device's own figures contradict."""
    return gpu_had_room(facts) if words_of_gpu_memory(facts) else []


def killed_from_outside(facts: Facts) -> Sequence[Finding]:
    """SIGKILL ended it, which no allocator does."""
    if facts.signal == SIGKILL:
        return [Finding("SIGKILL ended the main process", "processes", facts.end_ns)]
    return []


def ended_well(facts: Facts) -> Sequence[Finding]:
    """It ended with 0."""
    return [Finding("it ended with 0", "processes", facts.end_ns)] if facts.code == 0 else []


def fault_of_own(facts: Facts) -> Sequence[Finding]:
    """The driver reported an error of this workload's process before it ended."""
    return [found(e, _xid(e)) for e in _xids(facts) if facts.is_main(e.pid) or facts.own(e.cgroup)]


def fault_of_device(facts: Facts) -> Sequence[Finding]:
    """A GPU failed as a whole before the end."""
    lost = facts.near_end(GpuState, lambda _: True, _BEFORE_S, 1)
    return [
        *(found(e, _xid(e)) for e in _xids(facts) if _is_of_device(e)),
        *(found(e, f"GPU {e.device}: {e.state.replace('_', ' ')}") for e in lost),
    ]


def words_of_gpu_fault(facts: Facts) -> Sequence[Finding]:
    """Its last words are those of a failed device."""
    return [
        found(e, f"its last words: {e.pattern}")
        for e in facts.near_end(LastWords, lambda e: e.meaning == "gpu_fault", _BEFORE_S, 60)
    ]


def _memory(facts: Facts) -> list[GpuMemory]:
    """Looks at GPUs on which this workload held memory, or of which it is not known who did."""
    return facts.near_end(GpuMemory, lambda e: e.cgroup is None or facts.own(e.cgroup), _BEFORE_S, 1)


def _xids(facts: Facts) -> list[GpuXid]:
    """Each Xid once: the kernel log tells the same as the driver's events, and of which process."""
    xids = facts.near_end(
        GpuXid, lambda e: e.xid not in _CONSEQUENCES and e.xid not in _STATES, _BEFORE_S, 0.5
    )
    logged = [e for e in xids if e.source != "nvml"]
    return [e for e in xids if e.source != "nvml" or not any(_is_same(e, other) for other in logged)]


def _is_same(e: GpuXid, other: GpuXid) -> bool:
    near = abs(e.time_ns - other.time_ns) <= _SAME_S * SECOND + e.uncertainty_ns + other.uncertainty_ns
    return near and (e.xid, _address(e.device)) == (other.xid, _address(other.device))


def _address(device: str) -> str:
    """``0000:65:00`` of ``00000000:65:00.0`` and whatever else it is called."""
    domain, _, rest = device.partition(".")[0].partition(":")
    return f"{domain[-4:]}:{rest}"


def _is_of_device(e: GpuXid) -> bool:
    """The driver's events name no process: only some Xids then mean the device."""
    if e.source == "nvml":
        return e.xid in _OF_DEVICE
    return e.pid is None and e.xid not in _OF_APPLICATION


def _xid(e: GpuXid) -> str:
    return f"Xid {e.xid} on GPU {e.device}{': ' + e.text if e.text else ''}"


def _advice_memory(facts: Facts) -> str:
    seen = _memory(facts)
    if seen and seen[-1].largest_other:
        return (
            f"another process holds {amount(seen[-1].largest_other)} of GPU {seen[-1].device}: "
            "move one of them, or let this one ask for less"
        )
    if facts.near_end(LastWords, lambda e: "below_requested" in e.pattern, _BEFORE_S, 60):
        return "the share of GPU memory that it asks for is not free: a retry cannot help, a lower share can"
    return "let it ask for less GPU memory (batch, context, share), or give it a larger GPU"


RULES = (
    Rule(
        cause="gpu_oom",
        name="its words and the device agree on full GPU memory",
        rank=200,
        needs=(words_of_gpu_memory,),
        supports=(gpu_full,),
        unless=(gpu_had_room, killed_from_outside, ended_well, stop_asked),
        word_of=("nvml", "gpu"),
        witnesses=("nvml",),
        because=lambda facts: (
            "its allocator failed and the GPU was full"
            if gpu_full(facts)
            else "its allocator got no GPU memory"
        ),
        advice=_advice_memory,
    ),
    Rule(
        cause="gpu_fault",
        name="the driver reported an error of this process",
        rank=210,
        needs=(fault_of_own,),
        supports=(words_of_gpu_fault, fault_of_device),
        unless=(ended_well, stop_asked),
        witnesses=("kernel_log", "nvml"),
        because=lambda facts: f"{fault_of_own(facts)[0].text}, before it ended",
        advice=lambda _: "an error of the application unless it follows the GPU: try it on another one",
    ),
    Rule(
        cause="gpu_fault",
        name="the device failed and its words agree",
        rank=220,
        needs=(fault_of_device, words_of_gpu_fault),
        unless=(ended_well, stop_asked),
        witnesses=("kernel_log", "nvml"),
        because=lambda facts: f"{fault_of_device(facts)[0].text}, before it ended",
        advice=lambda _: "take the GPU out of service: reset it, and look at its ECC and link errors",
    ),
)
