"""Follows the journal through ``journalctl``, which knows its formats and its rights, as a child process."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Callable, Sequence

from cgotel.contract import SourceStatus, State
from cgotel.runtimes.systemd.entries import FIELDS, Entry, read_entry

NAME = "systemd.journal"

_CHUNK = 65536
_LONGEST_LINE = 1 << 20
_REMEDY = "run as root, or as a member of group systemd-journal or adm"


def command(matches: Sequence[Sequence[str]], cursor: str, since_ns: int | None) -> list[str]:
    """The command line: entries that fit any of ``matches``, from after ``cursor``.

    Without one, from ``since_ns`` of the wall clock; without either, from now on.
    """
    if cursor:
        where = ["--no-tail", f"--after-cursor={cursor}"]
    elif since_ns is not None:
        where = ["--no-tail", f"--since=@{since_ns // 1000 / 1_000_000:.6f}"]
    else:
        where = ["--lines=0"]
    wanted: list[str] = []
    for match in matches:
        wanted += ["+", *match] if wanted else match
    return [
        *("journalctl", "--system", "--follow", "--no-pager", "--output=json"),
        *(f"--output-fields={','.join(FIELDS)}", *where, *wanted),
    ]


class Journal:
    """The child at work. All methods belong to the loop that `start` ran in."""

    def __init__(self, on_entry: Callable[[Entry], None]) -> None:
        self.status = SourceStatus(NAME, State.OFF, "not started")
        self._on_entry = on_entry
        self._child: subprocess.Popen[bytes] | None = None
        self._line = bytearray()
        self._skipping = False
        self._notices = b""

    def start(self, matches: Sequence[Sequence[str]], cursor: str, since_ns: int | None) -> None:
        """Start the child; where that fails, `status` says why."""
        try:
            self._child = subprocess.Popen(  # noqa: S603 - nothing in it comes from outside
                command(matches, cursor, since_ns),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**os.environ, "LC_ALL": "C"},
            )
        except OSError as error:
            self.status = SourceStatus(NAME, State.ABSENT, f"journalctl: {error.strerror}", "install systemd")
            return
        self.status = SourceStatus(NAME, State.OK)
        self._line.clear()
        self._skipping, self._notices = False, b""
        loop = asyncio.get_running_loop()
        assert self._child.stdout is not None
        assert self._child.stderr is not None
        for stream, take in ((self._child.stdout, self._take), (self._child.stderr, self._take_notice)):
            os.set_blocking(stream.fileno(), False)
            loop.add_reader(stream.fileno(), self._read, stream.fileno(), take)

    def close(self) -> None:
        """End the child. May be called twice."""
        child, self._child = self._child, None
        if child is None:
            return
        loop = asyncio.get_running_loop()
        for stream in (child.stdout, child.stderr):
            if stream is not None:
                loop.remove_reader(stream.fileno())
                stream.close()
        child.kill()
        child.wait()

    def _read(self, fd: int, take: Callable[[bytes], None]) -> None:
        try:
            chunk = os.read(fd, _CHUNK)
        except BlockingIOError:
            return
        if chunk:
            take(chunk)
            return
        asyncio.get_running_loop().remove_reader(fd)
        if self.status.state is State.OK:
            self.status = SourceStatus(NAME, State.GONE, "journalctl ended")

    def _take(self, chunk: bytes) -> None:
        """Split into lines. One that is too long to be an entry of ours is left out, not kept."""
        *lines, rest = chunk.split(b"\n")
        for line in lines:
            whole = bytes(self._line) + line
            self._line.clear()
            if not self._skipping and (entry := read_entry(whole)) is not None:
                self._on_entry(entry)
            self._skipping = False
        self._line += rest
        if len(self._line) > _LONGEST_LINE:
            self._line.clear()
            self._skipping = True

    def _take_notice(self, chunk: bytes) -> None:
        """What journalctl says about what it may not see."""
        self._notices = (self._notices + chunk)[-_CHUNK:]
        if b"insufficient permissions" in self._notices or b"not seeing messages" in self._notices:
            why = "journalctl: no permission to read the system's journal"
            self.status = SourceStatus(NAME, State.DENIED, why, _REMEDY)
        elif b"No journal files were found" in self._notices:
            self.status = SourceStatus(NAME, State.ABSENT, "journalctl: there is no journal", "run journald")
