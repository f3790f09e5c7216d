"""Processes that do one thing when told and say when it is done.

The module is both ends: `Workload` is the test's handle; run as a script it is the process itself,
which obeys one command a line and answers each with one line.
"""

from __future__ import annotations

import mmap
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

MIB = 1 << 20


class Ended(Exception):  # noqa: N818 - being killed is what some tests are about
    """The workload ended (by a signal: ``returncode`` is its negative number) before it answered."""

    def __init__(self, returncode: int) -> None:
        super().__init__(f"the workload ended with status {returncode}")
        self.returncode = returncode


class Workload:
    """A process in one cgroup. Each method returns when the process has said that it is done."""

    def __init__(self, cgroup: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__, cgroup],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        self._answer()

    @property
    def pid(self) -> int:
        return self._process.pid

    def grow(self, mebibytes: int) -> None:
        """Allocate and touch so much more anonymous memory."""
        self.ask("grow", mebibytes)

    def shrink(self) -> None:
        """Give all of it back."""
        self.ask("shrink")

    def burn(self, cpu_seconds: float) -> None:
        """Use so much CPU time, however long that takes."""
        self.ask("burn", cpu_seconds)

    def write(self, path: Path, mebibytes: int) -> None:
        """Write so much past the page cache (O_DIRECT), from the start of a file or disk."""
        self.ask("write", path, mebibytes)

    def read(self, path: Path, mebibytes: int) -> None:
        """Read so much past the page cache (O_DIRECT), from the start of a file or disk."""
        self.ask("read", path, mebibytes)

    def cache(self, path: Path, mebibytes: int) -> None:
        """Write so much through the page cache and on to the disk (fsync)."""
        self.ask("cache", path, mebibytes)

    def fork(self, count: int) -> int:
        """Fork up to so many children that wait for ever; how many the pids limit let through."""
        return int(self.ask("fork", count))

    def ask(self, *words: object) -> str:
        """Tell and await the answer; raises `Ended` when the process dies over it."""
        self.tell(*words)
        return self._answer()

    def tell(self, *words: object) -> None:
        """Start something and go on: `answer` waits for it, the end of its cgroup ends it."""
        self._process.stdin.write(" ".join(map(str, words)) + "\n")

    def _answer(self) -> str:
        if line := self._process.stdout.readline():
            return line.strip()
        raise Ended(self._process.wait())

    answer = _answer

    def reap(self) -> None:
        """Kill it, unless it is dead, and forget it."""
        self._process.kill()
        with self._process:
            pass


_held: list[bytes] = []


def _grow(mebibytes: str) -> None:
    _held.append(b"\x01" * (int(mebibytes) * MIB))


def _shrink() -> None:
    _held.clear()


def _burn(cpu_seconds: str) -> None:
    end = time.process_time() + float(cpu_seconds)
    while time.process_time() < end:
        pass


def _write(path: str, mebibytes: str) -> None:
    block = _block()
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_DIRECT)
    for _ in range(int(mebibytes)):
        os.write(file, block)
    os.close(file)


def _read(path: str, mebibytes: str) -> None:
    block = _block()
    file = os.open(path, os.O_RDONLY | os.O_DIRECT)
    for _ in range(int(mebibytes)):
        os.readv(file, [block])
    os.close(file)


def _cache(path: str, mebibytes: str) -> None:
    with open(path, "wb") as file:
        file.writelines(b"\x01" * MIB for _ in range(int(mebibytes)))
        os.fsync(file.fileno())


def _fork(count: str) -> int:
    for done in range(int(count)):
        try:
            child = os.fork()
        except BlockingIOError:  # EAGAIN: pids.max is reached
            return done
        if child == 0:
            signal.pause()
    return int(count)


def _block() -> mmap.mmap:
    """One MiB at a page boundary, as O_DIRECT wants it."""
    return mmap.mmap(-1, MIB)


_COMMANDS: dict[str, Callable[..., int | None]] = {
    "burn": _burn,
    "cache": _cache,
    "fork": _fork,
    "grow": _grow,
    "read": _read,
    "shrink": _shrink,
    "write": _write,
}


def obey(cgroup: str) -> None:
    """Enter the cgroup, then do one command a line until the input ends."""
    Path(cgroup, "cgroup.procs").write_text("0")
    print("ready", flush=True)
    for line in sys.stdin:
        name, *arguments = line.split()
        print(_COMMANDS[name](*arguments), flush=True)


if __name__ == "__main__":
    obey(sys.argv[1])
