"""Slurm, Amazon ECS and Nomad."""

import pytest

from cgotel.identity import Identity, identify

STEPD = {"systemd.unit.name": "slurmstepd.scope"}
JOB = {**STEPD, "slurm.job.id": "1392969"}
TASK = "e95a40efbde84cbc8600660a109ec194"
ID = "89eae77df5fb5de73ccc3eff21cd7f1c72434fef6ade1328924315ebe7eeadd5"
ALLOC = "9f2a7a5e-3b60-4f0e-9a4f-5b1d2c3e4f50"

SHAPES = {
    # slurm src/plugins/cgroup/v2/cgroup_v2.c
    "slurm": (
        "/system.slice/slurmstepd.scope",
        "scope",
        {**STEPD, "systemd.slice.name": "system.slice"},
    ),
    "slurm, waiting room": ("/system.slice/slurmstepd.scope/system", "cgroup", STEPD),
    "slurm job": ("/system.slice/slurmstepd.scope/job_1392969", "job", JOB),
    "slurm step": (
        "/system.slice/slurmstepd.scope/job_1392969/step_batch",
        "cgroup",
        {**JOB, "slurm.step.id": "batch"},
    ),
    "slurm, the user's": (
        "/system.slice/slurmstepd.scope/job_1392969/step_0/user",
        "cgroup",
        {**JOB, "slurm.step.id": "0"},
    ),
    "slurm, its own": (
        "/system.slice/slurmstepd.scope/job_1392969/step_0/slurm",
        "cgroup",
        {**JOB, "slurm.step.id": "0"},
    ),
    "slurm task": (
        "/system.slice/slurmstepd.scope/job_1392969/step_0/user/task_3",
        "cgroup",
        {**JOB, "slurm.step.id": "0", "slurm.task.id": "3"},
    ),
    "slurm, no task's": (
        "/system.slice/slurmstepd.scope/job_1392969/step_extern/user/task_special",
        "cgroup",
        {**JOB, "slurm.step.id": "extern"},
    ),
    "slurm, several daemons": (
        "/system.slice/node1_slurmstepd.scope/job_7/step_interactive",
        "cgroup",
        {
            "systemd.unit.name": "node1_slurmstepd.scope",
            "slurm.job.id": "7",
            "slurm.step.id": "interactive",
        },
    ),
    "slurm, sortable id": (
        "/system.slice/slurmstepd.scope/sEKNKTV3WPV500",
        "job",
        {**STEPD, "slurm.job.sluid": "sEKNKTV3WPV500"},
    ),
    "slurm, container in a job": (
        f"/system.slice/slurmstepd.scope/job_1392969/step_0/user/task_0/libpod-{ID}",
        "container",
        {
            **JOB,
            "slurm.step.id": "0",
            "slurm.task.id": "0",
            "container.id": ID,
            "container.runtime.name": "podman",
        },
    ),
    "not slurm": ("/batch/job_12/step_0", "cgroup", {}),
    # amazon-ecs-agent agent/api/task/task_linux.go
    "ecs task, systemd": (
        f"/ecstasks.slice/ecstasks-{TASK}.slice",
        "slice",
        {
            "aws.ecs.task.id": TASK,
            "systemd.unit.name": f"ecstasks-{TASK}.slice",
            "systemd.slice.name": "ecstasks.slice",
        },
    ),
    "ecs container, systemd": (
        f"/ecstasks.slice/ecstasks-{TASK}.slice/docker-{ID}.scope",
        "container",
        {
            "aws.ecs.task.id": TASK,
            "container.id": ID,
            "container.runtime.name": "docker",
            "systemd.slice.name": f"ecstasks-{TASK}.slice",
        },
    ),
    "ecs task, cgroupfs": (f"/ecs/{TASK}", "cgroup", {"aws.ecs.task.id": TASK}),
    "ecs task of a cluster": (f"/ecs/prod/{TASK}", "cgroup", {"aws.ecs.task.id": TASK}),
    "ecs task, old id": (
        "/ecs/33425c99-5db7-45fb-8244-bc94d00661e4",
        "cgroup",
        {"aws.ecs.task.id": "33425c99-5db7-45fb-8244-bc94d00661e4"},
    ),
    "ecs container, cgroupfs": (
        f"/ecs/{TASK}/{ID}",
        "container",
        {"aws.ecs.task.id": TASK, "container.id": ID},
    ),
    "ecs container, fargate": (
        f"/ecs/{TASK}/{TASK}-123456789",
        "container",
        {"aws.ecs.task.id": TASK, "container.id": f"{TASK}-123456789"},
    ),
    "not ecs": (f"/{TASK}/{TASK}", "cgroup", {}),
    # nomad e2e/isolation
    "nomad": (
        f"/nomad.slice/share.slice/{ALLOC}.web-1.scope",
        "scope",
        {
            "nomad.alloc.id": ALLOC,
            "nomad.task.name": "web-1",
            "systemd.unit.name": f"{ALLOC}.web-1.scope",
            "systemd.slice.name": "share.slice",
        },
    ),
    "not nomad": (
        f"/system.slice/{ALLOC}.web.scope",
        "scope",
        {"systemd.unit.name": f"{ALLOC}.web.scope", "systemd.slice.name": "system.slice"},
    ),
}


@pytest.mark.parametrize(("path", "kind", "attributes"), SHAPES.values(), ids=SHAPES)
def test_schedulers(path: str, kind: str, attributes: dict[str, str]) -> None:
    assert identify(path) == Identity(kind, attributes)
