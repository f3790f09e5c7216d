"""Too little memory, below a limit."""

from __future__ import annotations

import subprocess

from tests.lab.guest.failures.model import Caused, failure
from tests.lab.guest.supervisors.model import Program, Supervisor, Workload, await_that

_GATE = 'read x < "$GATE"'


def hog(mebibytes: int | str, times: int = 1) -> str:
    """A command that touches so much at once, again and again."""
    return f"dd if=/dev/zero of=/dev/null bs={mebibytes}M count={times}"


@failure("cgroup_oom")
def oom_at_own_limit(supervisor: Supervisor, name: str) -> Caused:
    """The main process itself grows past its own limit."""
    workload = supervisor.run(name, Program(f"{_GATE}; exec {hog(256)}", memory_mib=32))
    supervisor.open_gate(workload)
    return Caused(workload, supervisor.wait(workload), limit=workload.cgroup)


@failure("cgroup_oom")
def oom_at_parents_limit(supervisor: Supervisor, name: str) -> Caused:
    """The slice is narrower than the workload's own limit, which is never reached."""
    slice_ = new_slice(name, "MemoryMax=48M", "MemorySwapMax=0")
    program = Program(f"{_GATE}; exec {hog(256)}", memory_mib=512, slice=slice_)
    workload = supervisor.run(name, program)
    supervisor.open_gate(workload)
    return Caused(workload, supervisor.wait(workload), limit=f"/{slice_}")


@failure("completed", or_else=("requested_stop",))
def oom_of_a_child(supervisor: Supervisor, name: str) -> Caused:
    """A child is killed; the main process lives on, and ends well when it is told to."""
    script = f"{_GATE}; {hog(256)}; {_GATE}; exit 0"
    program = Program(script, memory_mib=32, properties=("OOMPolicy=continue",))
    workload = supervisor.run(name, program)
    supervisor.open_gate(workload)
    events = workload.file("memory.events")
    await_that(f"a child of {name} is killed", lambda: "oom_kill 0\n" not in events.read_text())
    supervisor.open_gate(workload)
    return Caused(workload, supervisor.wait(workload), limit=workload.cgroup)


@failure("cgroup_oom", on=("systemd",))
def oom_of_a_child_stops_the_unit(supervisor: Supervisor, name: str) -> Caused:
    """OOMPolicy=stop, the default: systemd ends the main process for what happened to a child."""
    workload = supervisor.run(name, Program(f"{_GATE}; {hog(256)}; sleep 1000", memory_mib=32))
    supervisor.open_gate(workload)
    return Caused(workload, supervisor.wait(workload), limit=workload.cgroup)


@failure("cgroup_oom")
def oom_of_the_group(supervisor: Supervisor, name: str) -> Caused:
    """memory.oom.group: a child grows, everything is killed."""
    program = Program(f"{_GATE}; {hog(256)}; sleep 1000", memory_mib=32, properties=("OOMPolicy=kill",))
    workload = supervisor.run(name, program)
    workload.file("memory.oom.group").write_text("1")
    supervisor.open_gate(workload)
    return Caused(workload, supervisor.wait(workload), limit=workload.cgroup)


@failure("userspace_oom", or_else=("killed_externally",))
def killed_by_oomd(supervisor: Supervisor, name: str) -> Caused:
    """systemd-oomd ends what lives under pressure: a slice that swaps without end."""
    subprocess.run(["systemctl", "start", "systemd-oomd.service"], check=True)
    pressure = ("ManagedOOMMemoryPressure=kill", "ManagedOOMMemoryPressureLimit=1%")
    slice_ = new_slice(name, "MemoryHigh=24M", *pressure)
    program = Program(f"{_GATE}; exec {hog(64, 1_000_000)}", swap=True, slice=slice_)
    workload = supervisor.run(name, program)
    supervisor.open_gate(workload)
    return Caused(workload, supervisor.wait(workload), by="systemd-oomd")


def new_slice(name: str, *properties: str) -> str:
    """A slice right below the root, for one workload."""
    slice_ = f"{name.replace('-', '_')}.slice"
    subprocess.run(["systemctl", "set-property", "--runtime", slice_, *properties], check=True)
    return slice_


def set_badness(workload: Workload, score: int) -> None:
    """How gladly the kernel, or earlyoom, takes the main process first."""
    with open(f"/proc/{workload.pid}/oom_score_adj", "w") as opened:
        opened.write(f"{score}")
