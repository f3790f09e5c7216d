"""What is kept over a restart of the agent: counters by cgroup, and when they were read.

Only counters above zero are kept, which are few. Whatever is not there stood at zero, or belongs to
a cgroup that was made since; both began at zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from cgotel.kernel.cgroupfs import CgroupDirectory
from cgotel.watchers.cgroup_events.member import Member
from cgotel.watchers.cgroup_events.tally import NOTHING, Counts


class Saved(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``counts`` by cgroup id and file, read at ``boottime_ns`` (CLOCK_BOOTTIME) of ``boot``.

    Ids and counters mean nothing in another boot, nor under other mount ``options``. ``whole``: every
    cgroup was read.
    """

    boot: str
    boottime_ns: int
    options: tuple[str, ...]
    whole: bool
    counts: dict[int, dict[str, dict[str, int]]]

    def told(self, directory: CgroupDirectory) -> Mapping[str, Counts] | None:
        """What had been counted of a cgroup; None: nobody knows."""
        return self.counts.get(directory.id, NOTHING_COUNTED if self.whole else None)


NOTHING_COUNTED: dict[str, dict[str, int]] = {}


def encode(saved: Saved) -> bytes:
    """For `decode`."""
    return msgspec.msgpack.encode(saved)


def decode(content: bytes) -> Saved:
    """Raises ValueError for anything else than what `encode` wrote."""
    return msgspec.msgpack.decode(content, type=Saved)


def counted(members: Iterable[Member]) -> dict[int, dict[str, dict[str, int]]]:
    """The counters above zero."""
    counts = {member.directory.id: _files(member) for member in members}
    return {id_: files for id_, files in counts.items() if files}


def _files(member: Member) -> dict[str, dict[str, int]]:
    files = {
        file: _above_zero(tally.seen) for file, tally in member.tallies.items() if tally.seen is not NOTHING
    }
    return {file: counts for file, counts in files.items() if counts}


def _above_zero(counts: Counts) -> dict[str, int]:
    return {key: n for key, n in counts.items() if n}
