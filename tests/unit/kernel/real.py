"""The real kernel for unit tests: a cgroup of our own, processes in it, errors that it gives."""

import os
import resource
import select
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from cgotel.kernel.roots import Roots

_NOBODY = 65534


@pytest.fixture
def cgroup() -> Iterator[Path]:
    """An empty cgroup, removed with all that is below it."""
    path = _mount() / f"cgotel-test-{uuid.uuid4().hex[:12]}"
    path.mkdir()
    yield path
    remove(path)


def remove(cgroup: Path) -> None:
    """Remove a cgroup and those below it, if it is there still."""
    for directory, _, _ in os.walk(cgroup, topdown=False):
        Path(directory).rmdir()


@contextmanager
def processes(cgroup: Path, count: int) -> Iterator[set[int]]:
    """So many processes in a cgroup that do nothing."""
    script = (
        "echo $$ > $0/cgroup.procs; i=1; while [ $i -lt $1 ]; do sleep 600 & i=$((i + 1)); done; echo; wait"
    )
    shell = subprocess.Popen(["sh", "-c", script, cgroup, str(count)], stdout=subprocess.PIPE)
    try:
        assert shell.stdout is not None
        shell.stdout.readline()
        yield {int(pid) for pid in (cgroup / "cgroup.procs").read_text().split()}
    finally:
        (cgroup / "cgroup.kill").write_text("1")
        shell.communicate()
        _wait_until_empty(cgroup)


@contextmanager
def opened(directory: Path) -> Iterator[int]:
    """The descriptor of a directory."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield fd
    finally:
        os.close(fd)


@contextmanager
def unprivileged() -> Iterator[None]:
    """The rights of a user who owns nothing."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(_NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@contextmanager
def no_descriptor_left() -> Iterator[None]:
    """open(2) fails with EMFILE; what is open stays so."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(64, soft), hard))
    try:
        with suppress(OSError):
            while True:
                taken.append(os.open("/dev/null", os.O_RDONLY))
        yield
    finally:
        for fd in taken:
            os.close(fd)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def open_descriptors() -> set[str]:
    """The files that this process has open; sockets and pipes, which other threads own, left out."""
    links = Path("/proc/self/fd")
    opened = {fd: os.readlink(links / fd) for fd in os.listdir(links) if os.path.lexists(links / fd)}
    return {f"{fd}: {target}" for fd, target in opened.items() if target.startswith("/")}


def _mount() -> Path:
    """Where this process may make cgroups: the hierarchy's root, or its own cgroup if delegated."""
    mount = Roots.discover().cgroup
    assert mount is not None, "these tests need a cgroup v2 hierarchy"
    own = next(line for line in Path("/proc/self/cgroup").read_text().splitlines() if line.startswith("0::"))
    candidates = [mount, mount + own.removeprefix("0::").rstrip("/")]
    writable = [path for path in candidates if os.access(path, os.W_OK)]
    assert writable, f"these tests make cgroups: run them as root, or with {candidates[1]} delegated"
    return Path(writable[0])


def _wait_until_empty(cgroup: Path) -> None:
    with open(cgroup / "cgroup.events", encoding="ascii") as events:
        changes = select.poll()
        changes.register(events, select.POLLPRI)
        while "populated 1" in events.read():
            changes.poll()
            events.seek(0)
