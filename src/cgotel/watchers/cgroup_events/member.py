"""One cgroup that is watched: its files, what they counted, when it was looked at."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from cgotel.kernel.cgroupfs import CgroupDirectory
from cgotel.kernel.files import Descriptors, read_once
from cgotel.watchers.cgroup_events.tally import NOTHING, Counts, Tally

STATE = "cgroup.events"
MEMORY = "memory.events"
MEMORY_LOCAL = "memory.events.local"
PIDS = "pids.events"
PIDS_LOCAL = "pids.events.local"
CONTROL = "cgroup.subtree_control"
FREEZE = "cgroup.freeze"

NOTIFIED = frozenset((STATE, MEMORY, PIDS, PIDS_LOCAL))
"""A rise in memory.events.local is always one in memory.events too (mm, memcg_memory_event)."""

_COUNTING = (MEMORY, MEMORY_LOCAL, PIDS, PIDS_LOCAL)
_PINNED = (STATE, MEMORY, PIDS, PIDS_LOCAL)
_PIN = os.O_PATH | os.O_CLOEXEC
_PAUSE_NS = 10 * 10**6
_LONGEST_PAUSE_NS = 100 * 10**6

Parse = Callable[[bytes], Counts]


class Member:
    """What is known of one cgroup. It outlives the directory by its last values."""

    __slots__ = (
        "_descriptors",
        "_ended",
        "_pause_ns",
        "_pins",
        "_was_populated",
        "control",
        "directory",
        "due_ns",
        "gone",
        "looked_before_ns",
        "looked_ns",
        "path",
        "populated",
        "tallies",
        "told_ns",
        "watch",
    )

    def __init__(self, directory: CgroupDirectory, descriptors: Descriptors) -> None:
        self.directory = directory
        self.path = text(directory.path)
        self.watch: int | None = None
        self.populated: bool | None = None
        self.tallies: dict[str, Tally] = {}
        self.control = b""
        self.told_ns = 0
        self.due_ns: int | None = None
        self.gone = False
        self._pins: dict[str, int] = {}
        self._descriptors = descriptors
        self.looked_ns = 0
        self.looked_before_ns = 0
        self._pause_ns = 0
        self._was_populated = False
        self._ended = False

    @property
    def unsaid(self) -> bool:
        """Whether something rose that was not told."""
        return any(tally.first_ns is not None for tally in self.tallies.values())

    @property
    def urgent(self) -> bool:
        """Whether it is to be told at once."""
        return any(tally.urgent for tally in self.tallies.values())

    @property
    def alive(self) -> bool:
        """Whether the directory is that of a cgroup still: every one but the machine's root has the file."""
        try:
            os.stat(STATE, dir_fd=self.directory.fd)
        except OSError:
            return self.directory.parent is None
        return True

    def pin(self) -> bool:
        """Hold the inodes of its files, without which the kernel tells nothing of them.

        False where descriptors are used up.
        """
        for name in _PINNED:
            if name in self._pins:
                continue
            if self._descriptors.free <= 0:
                return False
            try:
                self._pins[name] = os.open(name, _PIN, dir_fd=self.directory.fd)
            except FileNotFoundError:
                continue
            except OSError:
                return False
            self._descriptors.free -= 1
        return True

    def begin(self, parse: Parse, now_ns: int, told: Mapping[str, Counts] | None, since_ns: int) -> None:
        """Look for the first time. ``told``: what was counted at ``since_ns``; None: nobody knows."""
        for name in _COUNTING:
            if name not in self.tallies and (data := self._read(name)) is not None:
                counts = parse(data)
                if told is None:
                    self.tallies[name] = Tally(counts, now_ns)
                else:
                    self.tallies[name] = Tally(told.get(name, NOTHING), since_ns)
                    self.tallies[name].see(counts, now_ns, heard=False)
        self.looked_ns = self.looked_before_ns = now_ns
        if self.populated is None and (state := self._read(STATE)) is not None:
            self.populated = _populated(parse(state))
            self._was_populated = self.populated is True

    def look(self, parse: Parse, now_ns: int, heard: bool = True, state_changed: bool = False) -> bool:
        """Read what changed, because of a notice or just so; whether the last process ended meanwhile.

        ``state_changed``: there was notice that processes came or went. Where there are none now, and
        none were ever seen, they did both: they lived for less than the time of a look.

        The state goes first: what is counted after it says that all have ended is complete. Where it
        cannot be read the cgroup is gone, and the last values stay.
        """
        quick = now_ns - self.looked_ns < 10 * _LONGEST_PAUSE_NS
        self._pause_ns = min(self._pause_ns + _PAUSE_NS, _LONGEST_PAUSE_NS) if quick else 0
        self.looked_before_ns, self.looked_ns = self.looked_ns, now_ns
        if self.directory.is_machine:
            return False
        state = self._read(STATE)
        if state is None:
            return False
        self.populated = _populated(parse(state))
        ended = self.populated is False and (self._was_populated or (state_changed and not self._ended))
        for name in list(self.tallies):
            if (data := self._read(name)) is None:
                del self.tallies[name]  # the controller was taken away; its counters begin anew
                self._unpin(name)
            else:
                self.tallies[name].see(parse(data), now_ns, heard)
        self._was_populated = self.populated is True
        self._ended = self._ended or ended
        return ended

    def disregard(self) -> None:
        """What was counted so far is not to be told."""
        for tally in self.tallies.values():
            tally.tell()

    def next_look_ns(self, now_ns: int) -> int:
        """When to look: at once, or a little later where notices come one upon the other.

        A cgroup at its limit gives a hundred a second.
        """
        return max(now_ns, self.looked_ns + self._pause_ns)

    def control_changed(self) -> bool:
        """Whether controllers were given to the children, or taken from them."""
        before, self.control = self.control, self._read(CONTROL) or b""
        return before != self.control

    def release(self) -> None:
        """Let go of the files."""
        self.gone = True
        for name in list(self._pins):
            self._unpin(name)

    def _unpin(self, name: str) -> None:
        if (fd := self._pins.pop(name, None)) is not None:
            os.close(fd)
            self._descriptors.free += 1

    def _read(self, name: str) -> bytes | None:
        try:
            return read_once(name, self.directory.fd)
        except OSError:
            return None


def text(path: str) -> str:
    """A path as valid text, whatever its bytes."""
    return path if path.isascii() else os.fsencode(path).decode("utf-8", "backslashreplace")


def _populated(state: Counts) -> bool | None:
    populated = state.get("populated")
    return None if populated is None else populated > 0
