"""Work that a scheduler put there: Slurm jobs, Amazon ECS tasks, Nomad allocations."""

from __future__ import annotations

import re
from collections.abc import Sequence

from cgotel.identity import containers, units
from cgotel.identity.facts import (
    ECS_TASK_ID,
    NOMAD_ALLOC_ID,
    NOMAD_TASK_NAME,
    SLURM_JOB_ID,
    SLURM_JOB_SLUID,
    SLURM_STEP_ID,
    SLURM_TASK_ID,
    UNIT_NAME,
    Found,
)

_SLURM_JOB = re.compile(r"job_([0-9]+)")
_SLURM_SLUID = re.compile(r"s[0-9A-HJKMNP-TV-Z]{13}")
_SLURM_STEP = re.compile(r"step_(.+)")
_SLURM_TASK = re.compile(r"task_([0-9]+)")
_ECS_TASK = re.compile(r"[0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_ECS_SLICE = re.compile(r"ecstasks-([0-9a-f]{32})\.slice")
_ECS_CONTAINER = re.compile(r"([0-9a-f]{32})-[0-9]+")
_NOMAD_SCOPE = re.compile(r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.(.+)\.scope")


def slurm(name: str, above: Sequence[str]) -> Found | None:
    """``slurmstepd.scope/job_<id>/step_<id>/user/task_<id>`` (src/plugins/cgroup/v2/cgroup_v2.c).

    A Slurm built for several daemons on one host puts the node's name before ``slurmstepd``.
    """
    if _is_slurm(above, 1):
        job = _SLURM_JOB.fullmatch(name)
        if job is not None:
            return Found("job", {SLURM_JOB_ID: job[1]})
        return Found("job", {SLURM_JOB_SLUID: name}) if _SLURM_SLUID.fullmatch(name) else None
    if _is_slurm(above, 2):
        step = _SLURM_STEP.fullmatch(name)
        return None if step is None else Found("cgroup", {SLURM_STEP_ID: step[1]})
    if _is_slurm(above, 4):
        task = _SLURM_TASK.fullmatch(name)
        return None if task is None else Found("cgroup", {SLURM_TASK_ID: task[1]})
    return None


def _is_slurm(above: Sequence[str], levels_up: int) -> bool:
    return len(above) >= levels_up and above[-levels_up].endswith("slurmstepd.scope")


def ecs_slice(name: str, above: Sequence[str]) -> Found | None:
    """``ecstasks.slice/ecstasks-<task>.slice``: the ECS agent's tasks, with the systemd driver."""
    match = _ECS_SLICE.fullmatch(name)
    return None if match is None else units.slice_with(name, {ECS_TASK_ID: match[1]})


def ecs_directory(name: str, above: Sequence[str]) -> Found | None:
    """``ecs/<task>`` or ``ecs/<cluster>/<task>``; on Fargate the container in it is ``<task>-<digits>``."""
    if "ecs" in above[-2:] and _ECS_TASK.fullmatch(name):
        return Found("cgroup", {ECS_TASK_ID: name})
    match = _ECS_CONTAINER.fullmatch(name)
    if match is None or above[-1:] != [match[1]]:
        return None
    return containers.container(name, None, {ECS_TASK_ID: match[1]})


def nomad(name: str, above: Sequence[str]) -> Found | None:
    """``nomad.slice/share.slice/<allocation>.<task>.scope`` (or ``reserve.slice``): Nomad's exec drivers."""
    match = _NOMAD_SCOPE.fullmatch(name) if "nomad.slice" in above else None
    if match is None:
        return None
    return Found("scope", {NOMAD_ALLOC_ID: match[1], NOMAD_TASK_NAME: match[2], UNIT_NAME: name})
