"""What every supervisor is asked for, and what it tells afterwards, alike for all of them."""

from __future__ import annotations

import errno
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from tests.lab.guest.cgroups import MOUNT

GATE = "/gate"
WAIT_S = 90

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Probe:
    """A health check: a shell command in the container, unhealthy after so many failures in a row."""

    command: str
    timeout_s: float = 30
    retries: int = 1
    on_failure: str = "none"
    interval_s: float = 0.5


@dataclass(frozen=True, slots=True)
class Program:
    """What to run: a script for busybox's shell, which finds a fifo (the gate) as ``$GATE``.

    ``command`` runs instead of the script. Limits are of memory in MiB (without swap, unless
    ``swap``) and of processes. ``slice`` is a systemd slice to live in, ``retries`` how often a
    failure is followed by another start, ``properties`` systemd's own (``WatchdogSec=1``).
    """

    script: str = ""
    command: tuple[str, ...] = ()
    image: str = "first"
    memory_mib: int | None = None
    swap: bool = False
    pids: int | None = None
    slice: str | None = None
    retries: int | None = None
    probe: Probe | None = None
    properties: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Workload:
    """One run of a program: its id, its main process and the cgroup of that, which has its limits.

    Where it did not start there is neither; ``refusal`` says why.
    """

    supervisor: str
    name: str
    id: str
    pid: int | None = None
    cgroup: str | None = None
    refusal: str = ""

    def file(self, name: str) -> Path:
        """A file of its cgroup."""
        assert self.cgroup
        return MOUNT / self.cgroup.removeprefix("/") / name


@dataclass(frozen=True, slots=True)
class End:
    """What a supervisor says once it is over: an exit code (128+N for signal N) and its own words."""

    exit_code: int | None
    state: Mapping[str, object] = field(default_factory=dict)
    events: tuple[str, ...] = ()


class Supervisor(ABC):
    """Runs programs. `begin` starts its daemon and gives it two images that differ."""

    name: str
    executes = True  # can run a command inside

    @abstractmethod
    def begin(self) -> None: ...

    @abstractmethod
    def run(self, name: str, program: Program) -> Workload:
        """Start a program and return when its main process is there."""

    @abstractmethod
    def stop(self, workload: Workload, grace_s: int) -> None:
        """Ask it to end; after so many seconds end it."""

    @abstractmethod
    def kill(self, workload: Workload) -> None:
        """Have the supervisor send it SIGKILL."""

    @abstractmethod
    def execute(self, workload: Workload, script: str) -> None:
        """Run a shell script inside, beside the main process."""

    @abstractmethod
    def wait(self, workload: Workload) -> End:
        """Wait until it is over, restarts included, and return what is said of it."""

    @abstractmethod
    def remove(self, name: str) -> None:
        """Forget what has this name, dead or alive."""

    def close(self) -> None:  # noqa: B027 - not all have something to end
        """End what `begin` has started beside the daemon."""

    def open_gate(self, workload: Workload, line: str = "") -> None:
        """Give the script that reads its gate one line; waits until it does."""
        assert workload.pid, f"{workload.name} does not run: {workload.refusal}"
        await_that(f"{workload.name} reads its gate", lambda: _write(self.gate(workload), f"{line}\n"))

    def gate(self, workload: Workload) -> Path:
        """The gate as this process sees it."""
        return Path(f"/proc/{workload.pid}/root{GATE}")


def await_that(what: str, holds: Callable[[], T]) -> T:
    """Wait until something is true, and return it."""
    end = time.monotonic() + WAIT_S
    while not (found := holds()):
        if time.monotonic() > end:
            raise TimeoutError(f"not within {WAIT_S} s: {what}")
        time.sleep(0.02)
    return found


def cgroup_of(pid: int) -> str | None:
    """The cgroup of a process, None if it is gone. crun's are one below the container's scope."""
    try:
        return Path(f"/proc/{pid}/cgroup").read_text().strip().removeprefix("0::")
    except (FileNotFoundError, ProcessLookupError):
        return None


def _write(fifo: Path, line: str) -> bool:
    """Write to a fifo that somebody has open for reading; False where nobody has yet, or any more."""
    try:
        descriptor = os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
        try:
            os.write(descriptor, line.encode())
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno in (errno.ENXIO, errno.ENOENT, errno.EPIPE):
            return False
        raise
    return True
