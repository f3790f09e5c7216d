"""Somebody asked for it: through the supervisor, past it, or by a new image."""

from __future__ import annotations

import subprocess

from tests.lab.guest.failures.model import CONTAINERS, Caused, failure
from tests.lab.guest.supervisors.model import Program, Supervisor

_GRACE_S = 1
_GATE = 'read x < "$GATE"'
_GRACE = (f"TimeoutStopSec={_GRACE_S}s",)


@failure("requested_stop", or_else=("completed",))
def stop_with_handler(supervisor: Supervisor, name: str) -> Caused:
    """The main process ends itself on SIGTERM, with status 0."""
    script = f'trap "exit 0" TERM; {_GATE}; while :; do sleep 1000 & wait; done'
    workload = supervisor.run(name, Program(script))
    supervisor.open_gate(workload)
    supervisor.stop(workload, grace_s=30)
    return Caused(workload, supervisor.wait(workload))


@failure("requested_stop", or_else=("killed_externally",))
def stop_without_handler(supervisor: Supervisor, name: str) -> Caused:
    """SIGTERM means nothing to it; SIGKILL follows."""
    workload = supervisor.run(name, Program(f'trap "" TERM; {_GATE}; exec sleep 1000', properties=_GRACE))
    supervisor.open_gate(workload)
    supervisor.stop(workload, _GRACE_S)
    return Caused(workload, supervisor.wait(workload))


@failure("requested_stop", or_else=("killed_externally",))
def kill_by_supervisor(supervisor: Supervisor, name: str) -> Caused:
    """`docker kill` and its like."""
    workload = supervisor.run(name, Program(f"{_GATE}; exec sleep 1000"))
    supervisor.kill(workload)
    return Caused(workload, supervisor.wait(workload))


@failure("killed_externally")
def kill_from_outside(supervisor: Supervisor, name: str) -> Caused:
    """`kill -9` of the main process, from a shell on the host."""
    workload = supervisor.run(name, Program(f"{_GATE}; exec sleep 1000"))
    subprocess.run(["sh", "-c", f"kill -9 {workload.pid}"], check=True)
    return Caused(workload, supervisor.wait(workload), by="sh")


@failure("killed_externally", on=CONTAINERS, or_else=("application_error",))
def kill_from_inside(supervisor: Supervisor, name: str) -> Caused:
    """`kill -9` from a shell inside, of what the main process waits for: PID 1 itself is immune there.

    The main process, a shell, ends with 137 by itself.
    """
    workload = supervisor.run(name, Program(f"{_GATE}; sleep 1000; exit $?"))
    supervisor.open_gate(workload)
    supervisor.execute(workload, "until kill -9 $(pidof sleep); do :; done")
    return Caused(workload, supervisor.wait(workload), by="sh")


@failure("redeployed", on=CONTAINERS, or_else=("requested_stop", "killed_externally"))
def redeploy(supervisor: Supervisor, name: str) -> Caused:
    """Stopped, removed, and started again under the same name from another image."""
    old = supervisor.run(name, Program("exec sleep 1000"))
    supervisor.stop(old, _GRACE_S)
    end = supervisor.wait(old)
    supervisor.remove(name)
    supervisor.run(name, Program("exec sleep 1000", image="second"))
    return Caused(old, end)
