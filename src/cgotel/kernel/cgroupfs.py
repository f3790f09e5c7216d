"""The tree of cgroup v2 directories, kept between sweeps and brought up to date cheaply.

A directory is known by its inode number, which on cgroup v2 is the cgroup's id and is never used
again on 64-bit kernels: a cgroup that is removed and made anew under the same path is another one.
Its descriptor stays open, so that no read can ever hit a namesake.

Only directories with children are listed again: ``st_nlink`` of a kernfs directory is two plus the
number of its subdirectories (fs/kernfs/inode.c, kernfs_refresh_inode).
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator

from cgotel.kernel.files import Descriptors

_OPEN_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_CHILDLESS = 2
_ROOT_ID = 1  # cgroup_ino() of a hierarchy's root: kernel/sched/psi.c and cgroup_psi() rely on it
_NO_DESCRIPTOR = OSError(errno.EMFILE, "the open files limit leaves none for it (ulimit -n, LimitNOFILE=)")


class CgroupDirectory:
    """One cgroup: its path from the cgroup root (``/`` for the root), its id, an open descriptor.

    ``made_ns`` is the directory's change time when first seen (Unix time in nanoseconds): the
    kernel stamps it when the directory is first looked up, at most moments after it was made.
    """

    __slots__ = ("children", "depth", "fd", "id", "made_ns", "parent", "path")

    def __init__(self, path: str, fd: int, parent: CgroupDirectory | None) -> None:
        status = os.fstat(fd)
        self.path = path
        self.fd = fd
        self.parent = parent
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.id = status.st_ino
        self.made_ns = status.st_ctime_ns
        self.children: dict[str, CgroupDirectory] = {}

    def ancestors(self) -> Iterator[CgroupDirectory]:
        """Parent, grandparent and so on up to the root."""
        above = self.parent
        while above is not None:
            yield above
            above = above.parent

    @property
    def is_machine(self) -> bool:
        """Whether this is the kernel's own root, and not that of a cgroup namespace or a subtree."""
        return self.id == _ROOT_ID

    def names(self) -> frozenset[str] | None:
        """Names of the files and directories in it; None where it cannot be listed."""
        try:
            return frozenset(os.listdir(self.fd))
        except OSError:
            return None

    def child_path(self, name: str) -> str:
        """The path of a child, from the cgroup root."""
        return f"/{name}" if self.parent is None else f"{self.path}/{name}"


class CgroupTree:
    """All cgroups below a mount for which ``enter(path, depth)`` is true; others are not opened.

    ``unopened`` says of the rest, by path, why each could not be opened or listed. Raises OSError
    where the mount itself cannot be opened.
    """

    def __init__(
        self,
        mount: str,
        enter: Callable[[str, int], bool] = lambda path, depth: True,
        descriptors: Descriptors | None = None,
    ) -> None:
        self._enter = enter
        self._descriptors = descriptors or Descriptors(1 << 30)
        self.root = CgroupDirectory("/", os.open(mount, _OPEN_DIRECTORY), None)
        self.unopened: dict[str, OSError] = {}

    def update(self) -> list[CgroupDirectory]:
        """Bring the tree up to date; return those gone, parents before their children.

        A child that vanishes or cannot be opened costs only itself, never its siblings. The
        descriptors of those gone are closed.
        """
        gone: list[CgroupDirectory] = []
        self.unopened.clear()
        for directory in self.walk():
            self._update_children(directory, gone)
        return gone

    def update_children(self, directory: CgroupDirectory) -> list[CgroupDirectory]:
        """Bring the children of one directory up to date, not theirs; return what is gone with all below."""
        gone: list[CgroupDirectory] = []
        self.unopened.pop(directory.path, None)
        self._update_children(directory, gone)
        return gone

    def add(self, parent: CgroupDirectory, name: str) -> CgroupDirectory | None:
        """Open one child that is known to have come; None where it went already, or cannot be opened."""
        self.unopened.pop(parent.child_path(name), None)
        if (child := self._open(parent, name)) is not None:
            parent.children[name] = child
        return child

    def drop(self, parent: CgroupDirectory, name: str) -> list[CgroupDirectory]:
        """Forget one child that is known to have gone, and all below it; return them, parents first."""
        gone: list[CgroupDirectory] = []
        self.unopened.pop(parent.child_path(name), None)
        if (child := parent.children.pop(name, None)) is not None:
            self._forget(child, gone)
        return gone

    def walk(self) -> Iterator[CgroupDirectory]:
        """Every cgroup, parents before their children."""
        pending = [self.root]
        while pending:
            directory = pending.pop()
            yield directory
            pending.extend(directory.children.values())

    def close(self) -> None:
        """Close every descriptor."""
        for child in self.root.children.values():
            self._forget(child, [])
        self.root.children.clear()
        os.close(self.root.fd)

    def _update_children(self, directory: CgroupDirectory, gone: list[CgroupDirectory]) -> None:
        try:
            found = _subdirectories(directory)
        except OSError as error:
            self.unopened[directory.path] = error  # what is known of its children stays
            return
        if not found and not directory.children:
            return
        for name in [name for name, child in directory.children.items() if found.get(name) != child.id]:
            self._forget(directory.children.pop(name), gone)
        for name in found.keys() - directory.children.keys():
            if (child := self._open(directory, name)) is not None:
                directory.children[name] = child

    def _open(self, parent: CgroupDirectory, name: str) -> CgroupDirectory | None:
        path = parent.child_path(name)
        if not self._enter(path, parent.depth + 1):
            return None
        if self._descriptors.free <= 0:
            self.unopened[path] = _NO_DESCRIPTOR
            return None
        try:
            fd = os.open(name, _OPEN_DIRECTORY, dir_fd=parent.fd)
        except FileNotFoundError:
            return None
        except OSError as error:
            self.unopened[path] = error
            return None
        self._descriptors.free -= 1
        return CgroupDirectory(path, fd, parent)

    def _forget(self, directory: CgroupDirectory, gone: list[CgroupDirectory]) -> None:
        pending = [directory]
        while pending:
            below = pending.pop()
            gone.append(below)
            os.close(below.fd)
            self._descriptors.free += 1
            pending.extend(below.children.values())


def _subdirectories(directory: CgroupDirectory) -> dict[str, int]:
    """Names and inode numbers of the directories below one."""
    if os.fstat(directory.fd).st_nlink == _CHILDLESS:
        return {}
    with os.scandir(directory.fd) as entries:
        return {e.name: e.inode() for e in entries if e.is_dir(follow_symlinks=False)}
