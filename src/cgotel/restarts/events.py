"""Verdicts as log events: names, severities and attributes for every monitoring stack.

Names follow OpenTelemetry's rules for events: nothing that varies is part of one. What identifies
the workload is repeated on the record, since the reporter is not its subject.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from cgotel.evidence import GpuXid, OomKill, Workload
from cgotel.identity import identify
from cgotel.model import AttributeValue, Entity, Event, Severity
from cgotel.restarts.case import Case
from cgotel.restarts.facts import Facts
from cgotel.restarts.loops import Loop
from cgotel.restarts.timeline import Restart
from cgotel.restarts.verdict import Cause, Verdict

EXIT = "cgotel.container.exit"
RESTART = "cgotel.container.restart"
LOOP = "cgotel.container.restart_loop"
OOM_KILL = "cgotel.oom.kill"
XID = "cgotel.gpu.xid"

ToWall = Callable[[int], int]
"""From the timeline of the evidence to what people's clocks show."""

_ERROR_TYPES: Mapping[Cause, str] = {
    "application_error": "exit_code",
    "crash": "signal",
    "cgroup_oom": "oom_kill",
    "global_oom": "oom_kill",
    "userspace_oom": "oom_kill",
    "gpu_oom": "gpu_oom",
    "gpu_fault": "gpu_fault",
    "health_check": "health_check",
    "watchdog": "watchdog",
    "pids_limit": "pids_limit",
    "killed_externally": "signal",
    "start_failure": "start_failed",
}
_GENTLE: frozenset[Cause] = frozenset(("completed", "requested_stop", "redeployed", "host_shutdown"))
_FATAL: frozenset[Cause] = frozenset(("cgroup_oom", "global_oom", "userspace_oom", "crash", "gpu_fault"))
_OF_A_STOP = (1, 2, 3, 15)
_FELL_OFF = 79
SECOND = 1_000_000_000


def severity(case: Case, verdict: Verdict) -> int:
    """How bad an end is."""
    if verdict.cause in _GENTLE:
        return Severity.INFO
    if verdict.cause == "health_check":
        return Severity.WARN
    if verdict.cause in _FATAL:
        return Severity.FATAL
    if verdict.cause == "unknown" and Facts(case).signal in _OF_A_STOP:
        return Severity.WARN
    return Severity.ERROR


def entity_of(workload: Workload) -> Entity:
    """The workload as the subject of an event, by its path and by what its runtime calls it."""
    path = workload.cgroup or ""
    identity = identify(path)
    attributes: dict[str, AttributeValue] = dict(identity.attributes)
    if path:
        attributes["process.linux.cgroup"] = f"0::{path}"
    if workload.runtime == "systemd":
        attributes["systemd.unit.name"] = workload.id
    elif workload.runtime != "cgroup":
        attributes["container.id"] = workload.id
        attributes["container.runtime.name"] = str(attributes.get("container.runtime.name", workload.runtime))
        if workload.name:
            attributes["container.name"] = workload.name
    if workload.image:
        attributes["container.image.name"] = workload.image
    if workload.image_id:
        attributes["container.image.id"] = workload.image_id
    if workload.pod:
        attributes |= {"k8s.pod.name": workload.pod, "k8s.namespace.name": workload.namespace}
    kinds = {"systemd": "service", "cgroup": identity.kind}
    return Entity(kind=kinds.get(workload.runtime, "container"), key=workload.key, attributes=attributes)


def exit_event(case: Case, verdict: Verdict, observed_ns: int, to_wall: ToWall) -> Event:
    """The end of one run, with its verdict; its time is that of the end."""
    return _event(EXIT, case, verdict, case.exit.ended_ns, observed_ns, to_wall, f"exit:{case.exit.uid}", {})


def restart_event(restart: Restart, verdict: Verdict, observed_ns: int, to_wall: ToWall) -> Event:
    """A new run of the same workload, with the verdict on the one before."""
    case, started = restart.case, restart.started
    more: dict[str, AttributeValue] = {"cgotel.restart.gap": (started.time_ns - case.exit.ended_ns) / 1e9}
    if started.restart_count is not None:
        count = "k8s.container.restart_count" if started.source == "cri" else "cgotel.restart.count"
        more[count] = started.restart_count
    if started.workload.id != case.exit.workload.id:
        more["cgotel.container.previous_id"] = case.exit.workload.id
    uid = f"restart:{started.workload.key}@{started.time_ns // 1_000_000}"
    return _event(RESTART, case, verdict, started.time_ns, observed_ns, to_wall, uid, more)


def loop_event(case: Case, verdict: Verdict, loop: Loop, observed_ns: int, to_wall: ToWall) -> Event:
    """A workload that ends again and again for the same cause."""
    more: dict[str, AttributeValue] = {
        "cgotel.loop.count": loop.count,
        "cgotel.loop.period": round(loop.period_s, 3),
    }
    if loop.hopeless:
        more["cgotel.loop.hopeless"] = loop.hopeless
    workload = case.exit.workload
    uid = f"loop:{workload.runtime}:{workload.title}@{loop.first_ns // 1_000_000}:{loop.count}"
    event = _event(LOOP, case, verdict, case.exit.ended_ns, observed_ns, to_wall, uid, more)
    body = f"{workload.title} ended {loop.count} times, every {loop.period_s:.3g} s, for the same cause: "
    return replace(event, body=body + (loop.hopeless or verdict.because))


def oom_kill_event(kill: OomKill, observed_ns: int, to_wall: ToWall, past: bool = False) -> Event:
    """The kernel ended a process for memory: an event of its own, whoever lives on.

    ``past``: before anyone watched. That is told for the record, and wakes nobody.
    """
    path = kill.cgroup or ""
    subject: dict[str, AttributeValue] = dict(identify(path).attributes) if path else {}
    if path:
        subject["process.linux.cgroup"] = f"0::{path}"
    attributes = subject | {
        "process.pid": kill.pid,
        "process.command": kill.comm,
        "error.type": "oom_kill",
        "cgotel.oom.constraint": kill.constraint,
    }
    if kill.limit_cgroup:
        attributes["cgotel.oom.limit_cgroup"] = kill.limit_cgroup
    if kill.trigger_comm:
        attributes["cgotel.oom.trigger"] = kill.trigger_comm
    where = f" at the limit of {kill.limit_cgroup}" if kill.limit_cgroup else ""
    if kill.constraint not in ("memcg", "unknown"):
        where = ", for the host ran out"
    if past:
        where += ", before cgotel watched"
        attributes["cgotel.oom.past"] = True
    grave = Severity.ERROR if kill.constraint == "memcg" else Severity.FATAL
    return Event(
        name=OOM_KILL,
        time_ns=to_wall(kill.time_ns),
        observed_ns=observed_ns,
        severity=Severity.INFO if past else grave,
        entity=Entity(kind=identify(path).kind if path else "cgroup", key=path or "/", attributes=subject),
        body=f"the kernel's OOM killer ended {kill.comm} ({kill.pid}) of {path or 'no known cgroup'}{where}",
        uid=f"oom_kill:{kill.pid}@{kill.time_ns // 1_000_000}",
        attributes=attributes,
    )


def xid_event(xid: GpuXid, observed_ns: int, to_wall: ToWall) -> Event:
    """The NVIDIA driver reported an error."""
    attributes: dict[str, AttributeValue] = {
        "hw.id": xid.device,
        "cgotel.gpu.xid": xid.xid,
        "error.type": f"xid_{xid.xid}",
    }
    if xid.pid is not None:
        attributes["process.pid"] = xid.pid
    return Event(
        name=XID,
        time_ns=to_wall(xid.time_ns),
        observed_ns=observed_ns,
        severity=Severity.FATAL if xid.xid == _FELL_OFF else Severity.ERROR,
        entity=Entity(kind="gpu", key=xid.device, attributes={"hw.id": xid.device, "hw.type": "gpu"}),
        body=f"Xid {xid.xid} on GPU {xid.device}{': ' + xid.text if xid.text else ''}",
        uid=f"xid:{xid.device}:{xid.xid}:{xid.pid or 0}@{xid.time_ns // SECOND}",
        attributes=attributes,
    )


def _event(
    name: str,
    case: Case,
    verdict: Verdict,
    time_ns: int,
    observed_ns: int,
    to_wall: ToWall,
    uid: str,
    more: Mapping[str, AttributeValue],
) -> Event:
    entity = entity_of(case.exit.workload)
    attributes = {**entity.attributes, **_of_verdict(case, verdict), **more}
    return Event(
        name=name,
        time_ns=to_wall(time_ns),
        observed_ns=observed_ns,
        severity=severity(case, verdict),
        entity=entity,
        body=f"{case.exit.workload.title}: {verdict.cause} ({verdict.sureness}): {verdict.because}",
        uid=uid,
        attributes=attributes,
    )


def _of_verdict(case: Case, verdict: Verdict) -> dict[str, AttributeValue]:
    facts = Facts(case)
    found: dict[str, AttributeValue] = {
        "cgotel.restart.reason": verdict.cause,
        "cgotel.restart.sureness": verdict.sureness,
        "cgotel.restart.evidence": tuple(f"{f.witness}: {f.text}" for f in verdict.supporting),
    }
    optional: dict[str, AttributeValue | None] = {
        "process.pid": case.exit.workload.pid,
        "process.exit.code": case.exit.code if case.exit.code is not None else facts.code,
        "cgotel.exit.signal": facts.signal,
        "error.type": _ERROR_TYPES.get(verdict.cause),
        "cgotel.restart.against": tuple(f"{f.witness}: {f.text}" for f in verdict.against) or None,
        "cgotel.restart.missing": tuple(f"{name}: {why}" for name, why in verdict.missing.items()) or None,
        "cgotel.restart.contributing": verdict.contributing or None,
        "cgotel.restart.by": verdict.by or None,
        "cgotel.restart.limit_cgroup": verdict.limit_cgroup,
        "cgotel.restart.advice": verdict.advice or None,
        "cgotel.restart.past": True if case.exit.past else None,
    }
    return found | {key: value for key, value in optional.items() if value is not None}
