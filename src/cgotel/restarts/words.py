"""Evidence in words, one short line a piece, for people. What comes from outside is left as it came."""

from __future__ import annotations

import signal as signals

from cgotel.evidence import (
    AnyEvidence,
    CgroupEmptied,
    Fault,
    ForkRejected,
    Gap,
    GpuMemory,
    GpuState,
    GpuXid,
    HostMemory,
    HostState,
    HungTask,
    LastWords,
    MemoryEvents,
    MemoryUse,
    OomKill,
    OomMark,
    PidsEvents,
    ProbeResult,
    ProcessExit,
    RunEnded,
    RunStarted,
    RuntimeAction,
    RuntimeState,
    Signal,
    UnitResult,
    UserspaceOom,
)
from cgotel.restarts.amounts import amount


def signal_name(number: int | None) -> str:
    """``SIGKILL`` for 9; ``signal 99`` for what has no name."""
    try:
        return signals.Signals(number or 0).name
    except ValueError:
        return f"signal {number}"


def describe(piece: AnyEvidence) -> str:
    """What one piece of evidence says."""
    match piece:
        case OomKill():
            limit = f" at the limit of {piece.limit_cgroup}" if piece.limit_cgroup else ""
            used = f" ({amount(piece.usage)} of {amount(piece.limit)})" if piece.usage and piece.limit else ""
            by = f", asked for by {piece.trigger_comm}" if piece.trigger_comm else ""
            return f"OOM kill of {piece.comm} ({piece.pid}){limit}{used}{by}"
        case ForkRejected():
            return f"fork refused in {piece.cgroup}"
        case Fault():
            return f"{piece.comm} ({piece.pid}): {piece.what}"
        case HungTask():
            return f"{piece.comm} ({piece.pid}) did not run for {piece.seconds} s"
        case GpuXid():
            return f"Xid {piece.xid} on GPU {piece.device}: {piece.text}"
        case Signal():
            sender = "the kernel" if piece.code == 128 else f"{piece.sender_comm or '?'} ({piece.sender_pid})"
            ignored = ", ignored" if piece.result == 1 else ""
            return f"{sender} sent {signal_name(piece.signal)} to {piece.comm} ({piece.pid}){ignored}"
        case OomMark():
            return f"{piece.comm} ({piece.pid}) marked as OOM victim"
        case ProcessExit():
            how = signal_name(piece.signal) if piece.signal is not None else f"code {piece.code}"
            return f"{piece.comm} ({piece.pid}) ended: {how}"
        case MemoryEvents():
            rose = ", ".join(f"{key} +{count}" for key, count in piece.rose.items())
            return f"{'memory.events.local' if piece.local else 'memory.events'} of {piece.cgroup}: {rose}"
        case PidsEvents():
            return f"pids.events of {piece.cgroup}: {piece.refused} forks refused"
        case CgroupEmptied():
            return f"{piece.cgroup} is {'gone' if piece.removed else 'empty'}"
        case _:
            return _of_supervisor(piece)


def _of_supervisor(piece: AnyEvidence) -> str:
    match piece:
        case RunStarted():
            return f"{piece.workload.title} started" + (
                f" (pid {piece.workload.pid})" if piece.workload.pid else ""
            )
        case RunEnded():
            if not piece.started:
                return f"{piece.workload.title} could not start: {piece.error}"
            how = signal_name(piece.signal) if piece.signal is not None else f"exit code {piece.code}"
            return f"{piece.workload.title} ended: {how}"
        case RuntimeAction():
            number = f" {signal_name(piece.signal)}" if piece.signal else ""
            why = f" ({piece.reason})" if piece.reason else ""
            return f"{piece.action}{number} {piece.workload.title}{why}"
        case RuntimeState():
            flag = {True: ", OOMKilled", False: ", not OOMKilled", None: ""}[piece.oom_killed]
            return f"says exit code {piece.code}{flag}" + (f", {piece.reason}" if piece.reason else "")
        case UnitResult():
            how = signal_name(piece.signal) if piece.signal is not None else f"code {piece.code}"
            return f"{piece.workload.title}: Result={piece.result}, {how}" + (
                f", job {piece.job}" if piece.job else ""
            )
        case ProbeResult():
            took = f" in {piece.latency_s:.3g} s" if piece.latency_s is not None else ""
            row = f", {piece.failures} in a row" if piece.failures else ""
            return f"probe {'answered' if piece.ok else 'failed'}{took}{row}"
        case UserspaceOom():
            what = piece.cgroup or (f"process {piece.pid}" if piece.pid else "something")
            return f"{piece.by} ended {what}" + (f": {piece.reason}" if piece.reason else "")
        case LastWords():
            return f"last words: {piece.pattern}" + (f": {piece.text}" if piece.text else "")
        case _:
            return _of_state(piece)


def _of_state(piece: AnyEvidence) -> str:
    match piece:
        case MemoryUse():
            limit = f" of {amount(piece.effective_limit)}" if piece.effective_limit else ""
            stalled = f", stalled {piece.full_avg10:.0%}" if piece.full_avg10 is not None else ""
            return f"{piece.cgroup} used {amount(piece.current)}{limit}{stalled}"
        case HostMemory():
            return f"the host had {amount(piece.available)} available"
        case GpuMemory():
            return f"GPU {piece.device} used {amount(piece.used)} of {amount(piece.total)}"
        case GpuState():
            return f"GPU {piece.device}: {piece.state.replace('_', ' ')} {piece.text}".rstrip()
        case HostState():
            return f"the host: {piece.state}"
        case Gap():
            return f"nothing seen for {(piece.time_ns - piece.since_ns) / 1e9:.3g} s: {piece.reason}"
        case _:
            raise TypeError(f"no words for {type(piece).__name__}")
