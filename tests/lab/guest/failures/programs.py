"""The program ends by itself: well, badly, or before it began."""

from __future__ import annotations

from tests.lab.guest.failures.model import Caused, failure
from tests.lab.guest.supervisors.model import Program, Supervisor

_GATE = 'read x < "$GATE"'


@failure("completed")
def exit_0(supervisor: Supervisor, name: str) -> Caused:
    """It is done."""
    return _run(supervisor, name, f"{_GATE}; exit 0")


@failure("application_error", on=("docker", "podman", "systemd"))
def restarts_by_policy(supervisor: Supervisor, name: str) -> Caused:
    """Status 1 three times: started once, and again twice by its supervisor."""
    script = f'[ -e "$GATE.opened" ] || {_GATE}; echo > "$GATE.opened"; exit 1'
    workload = supervisor.run(name, Program(script, retries=2))
    supervisor.open_gate(workload)
    return Caused(workload, supervisor.wait(workload), ends=3)


@failure("crash", or_else=("application_error",))
def segfault(supervisor: Supervisor, name: str) -> Caused:
    """A read of address 0, by the main process itself."""
    return _run(supervisor, name, f"{_GATE}; exec fault")


@failure("crash", or_else=("application_error",))
def abort(supervisor: Supervisor, name: str) -> Caused:
    """SIGABRT to a child from itself; the shell that is the main process hands on 134."""
    return _run(supervisor, name, f"{_GATE}; sh -c 'kill -ABRT $$'; exit $?")


@failure("pids_limit", or_else=("application_error",))
def fork_bomb(supervisor: Supervisor, name: str) -> Caused:
    """A shell that forks on until it cannot, and ends for it."""
    script = f"{_GATE}; i=0; while [ $i -lt 64 ]; do sleep 1000 & i=$((i + 1)); done; exit 0"
    workload = supervisor.run(name, Program(script, pids=16))
    supervisor.open_gate(workload)
    return Caused(workload, supervisor.wait(workload), limit=workload.cgroup)


@failure("start_failure")
def missing_program(supervisor: Supervisor, name: str) -> Caused:
    """The command is nowhere."""
    return _start(supervisor, name, "/bin/missing")


@failure("start_failure")
def not_a_program(supervisor: Supervisor, name: str) -> Caused:
    """The command is a file that cannot be executed."""
    return _start(supervisor, name, "/bin/plain")


def _run(supervisor: Supervisor, name: str, script: str) -> Caused:
    workload = supervisor.run(name, Program(script))
    supervisor.open_gate(workload)
    return Caused(workload, supervisor.wait(workload))


def _start(supervisor: Supervisor, name: str, command: str) -> Caused:
    workload = supervisor.run(name, Program(command=(command,)))
    return Caused(workload, supervisor.wait(workload))
