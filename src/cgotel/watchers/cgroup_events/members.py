"""All cgroups that are there, and those that come and go, each with its files and its watch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from cgotel.kernel.cgroupfs import CgroupDirectory, CgroupTree
from cgotel.kernel.files import Descriptors
from cgotel.kernel.formats import FlatKeyed
from cgotel.watchers.cgroup_events.hearing import Hearing
from cgotel.watchers.cgroup_events.member import Member
from cgotel.watchers.cgroup_events.tally import NOTHING, Counts

_TEXTS = 4096

Told = Callable[[CgroupDirectory], Mapping[str, Counts] | None]
"""What was told of a cgroup before; None: nobody knows."""


def unknown(directory: CgroupDirectory) -> None:
    """Nobody knows: the first look only sets the ground."""


def made(directory: CgroupDirectory) -> Mapping[str, Counts]:
    """It was made just now: everything began at zero."""
    return {}


class Members:
    """Keeps `Member` objects in step with the tree. Every method that finds some returns the new ones."""

    def __init__(self, tree: CgroupTree, hearing: Hearing, descriptors: Descriptors) -> None:
        self.tree = tree
        self.polled: dict[Member, None] = {}
        self._hearing = hearing
        self._descriptors = descriptors
        self._by_directory: dict[CgroupDirectory, Member] = {}
        self._by_watch: dict[int, Member] = {}
        self._flat = FlatKeyed(lambda key: key.decode("ascii", "replace"))
        self._parsed: dict[bytes, Counts] = {}

    def __len__(self) -> int:
        return len(self._by_directory)

    def __iter__(self) -> Iterator[Member]:
        return iter(list(self._by_directory.values()))

    def parse(self, text: bytes) -> Counts:
        """An events file. Most of them hold the same zeros, which are kept once."""
        if (counts := self._parsed.get(text)) is None:
            wanted, values = self._flat.columns(text)
            counts = {key: int(n) for key, n in zip(wanted, values, strict=True)} if wanted else NOTHING
            if len(self._parsed) >= _TEXTS:
                self._parsed.clear()
            self._parsed[text] = counts
        return counts

    def of_watch(self, watch: int) -> Member | None:
        """Whose watch it is."""
        return self._by_watch.get(watch)

    def of(self, directory: CgroupDirectory) -> Member | None:
        """The member of a directory."""
        return self._by_directory.get(directory)

    def admit(self, directory: CgroupDirectory, now_ns: int, told: Told, since_ns: int) -> list[Member]:
        """A directory is there: hear of it first and list what is in it then, so that none slips through."""
        new: list[Member] = []
        pending = [directory]
        while pending:
            one = pending.pop()
            member = Member(one, self._descriptors)
            self._by_directory[one] = member
            self.attend(member, now_ns)
            member.begin(self.parse, now_ns, told(one), since_ns)
            new.append(member)
            self.tree.update_children(one)
            pending.extend(one.children.values())
        return new

    def attend(self, member: Member, now_ns: int) -> None:
        """Hear of a cgroup if that can be, else it is polled."""
        if member.pin():
            member.watch = self._hearing.listen(member.directory.fd, now_ns)
        else:
            self._hearing.no_descriptors()
        if member.watch is None:
            self.polled[member] = None
        else:
            self._by_watch[member.watch] = member
            self.polled.pop(member, None)

    def forget(self, gone: list[CgroupDirectory]) -> list[Member]:
        """Directories have gone; their members, children before their parents."""
        ended = [m for one in reversed(gone) if (m := self._by_directory.pop(one, None)) is not None]
        for member in ended:
            self.polled.pop(member, None)
            if member.watch is not None:
                del self._by_watch[member.watch]
                self._hearing.forget(member.watch)
            member.release()
        return ended

    def close(self) -> None:
        """Let go of everything."""
        for member in self._by_directory.values():
            member.release()
        self._by_directory.clear()
        self._by_watch.clear()
        self.polled.clear()
        self.tree.close()
