"""Cgroups for tests: made, limited, filled, read raw and removed."""

from __future__ import annotations

import os
import select
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.lab.guest.workloads import Workload

MOUNT = Path("/sys/fs/cgroup")
WAIT_S = 20


class Cgroup:
    """A cgroup v2 directory. As a context manager it is removed at the end, with all below it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._children: list[Cgroup] = []
        self._workloads: list[Workload] = []

    def __repr__(self) -> str:
        return f"Cgroup({self.name})"

    @classmethod
    def delegated(cls) -> Cgroup:
        """The service's cgroup, emptied: this process moves into a child and frees it for others.

        Admin-guide cgroup-v2, "No Internal Process Constraint".
        """
        own = MOUNT / Path("/proc/self/cgroup").read_text().strip().removeprefix("0::/")
        root = cls(own)
        pytest_cgroup = own / "pytest"
        pytest_cgroup.mkdir()
        (pytest_cgroup / "cgroup.procs").write_text("0")
        root.enable()
        return root

    @property
    def name(self) -> str:
        """The path below the mount, as /proc/PID/cgroup shows it."""
        return f"/{self.path.relative_to(MOUNT)}"

    def child(self, name: str, **files: object) -> Cgroup:
        """Make a child and write its files: ``memory_max="64M"`` writes memory.max."""
        self.enable()
        path = self.path / name
        path.mkdir()
        made = Cgroup(path)
        self._children.append(made)
        for file, value in files.items():
            made.write(file.replace("_", "."), value)
        return made

    def nested(self, *names: str) -> Iterator[Cgroup]:
        """A chain of children, each in the one before."""
        inner = self
        for name in names:
            inner = inner.child(name)
            yield inner

    def enable(self) -> None:
        """Give the children every controller that is here; a no-op where that is done."""
        wanted = self.words("cgroup.controllers") - self.words("cgroup.subtree_control")
        if wanted:
            self.write("cgroup.subtree_control", " ".join(f"+{name}" for name in sorted(wanted)))

    def write(self, file: str, value: object) -> None:
        """Write one file; the kernel's refusal is an OSError."""
        (self.path / file).write_text(f"{value}")

    def read(self, file: str) -> str:
        """One file as it is, without the last newline."""
        return (self.path / file).read_text().rstrip("\n")

    def number(self, file: str) -> int | None:
        """A single-value file; None for ``max``."""
        text = self.read(file)
        return None if text == "max" else int(text)

    def words(self, file: str) -> set[str]:
        """A space-separated list."""
        return set(self.read(file).split())

    def flat(self, file: str) -> dict[str, int]:
        """A flat keyed file (``usage_usec 12``)."""
        return {key: int(value) for key, value in map(str.split, self.read(file).splitlines())}

    def keyed(self, file: str) -> dict[str, dict[str, str]]:
        """A nested keyed file (``8:0 rbytes=4096 wbytes=0``; ``some avg10=0.00 total=12``)."""
        lines = (line.split() for line in self.read(file).splitlines())
        return {key: dict(pair.split("=") for pair in pairs) for key, *pairs in lines}

    def spawn(self) -> Workload:
        """Start a workload in this cgroup; it idles until told what to do."""
        workload = Workload(self.path)
        self._workloads.append(workload)
        return workload

    def await_events(self, file: str, reached: Callable[[dict[str, int]], bool]) -> dict[str, int]:
        """Wait until an events file (cgroup.events, memory.events, pids.events) says what is wanted.

        The kernel notifies a poll of these files on each change; no time passes idly.
        """
        with open(self.path / file) as opened:
            poll = select.poll()
            poll.register(opened, select.POLLPRI)
            while True:
                opened.seek(0)
                now = {key: int(value) for key, value in map(str.split, opened)}
                if reached(now):
                    return now
                if not poll.poll(WAIT_S * 1000):
                    raise TimeoutError(f"{self.name}: {file} stayed at {now} for {WAIT_S} s")

    def kill(self) -> None:
        """Kill everything in here and below, and wait until it is gone."""
        self.write("cgroup.kill", 1)
        self.await_events("cgroup.events", lambda events: not events["populated"])

    def remove(self) -> None:
        """Kill and remove this cgroup and all below it; may be gone already."""
        if self.path.exists():
            self.kill()
            for folder, _, _ in os.walk(self.path, topdown=False):
                Path(folder).rmdir()
        self._reap()

    def _reap(self) -> None:
        for workload in self._workloads:
            workload.reap()
        for child in self._children:
            child._reap()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()
