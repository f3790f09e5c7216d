"""inotify(7): the kernel says which files of a directory changed, came and went.

One watch of a directory hears of every file in it, of kernfs too: the kernel tells the parent when
it updates ``memory.events`` (fs/kernfs/file.c, kernfs_notify_workfn), as long as the file's inode is
in memory. An open descriptor of the file holds it there; one with O_PATH does so for a quarter of
the memory.

On kernfs a watch survives its directory: no IN_DELETE_SELF comes, so it has to be ended by `forget`.

libc is called through ctypes: the kept libraries (inotify-simple, asyncinotify) look it up with
``ctypes.util.find_library``, which runs ldconfig or a compiler in the middle of a service.
"""

from __future__ import annotations

import contextlib
import ctypes
import enum
import os
import struct
from typing import NamedTuple

_HEAD = struct.Struct("iIII")  # struct inotify_event without its name
_ROOM = 16384
_ONLY_DIRECTORIES = 0x01000000  # IN_ONLYDIR


class Change(enum.IntFlag):
    """What a notice is about (include/uapi/linux/inotify.h)."""

    CHANGED = 0x2
    CREATED = 0x100
    REMOVED = 0x200
    OVERFLOWED = 0x4000
    FORGOTTEN = 0x8000
    OF_DIRECTORY = 0x40000000


class Notice(NamedTuple):
    """One change of the file ``name`` in the directory of ``watch``; ``change`` holds bits of `Change`."""

    watch: int
    change: int
    name: str


class Notifications:
    """One queue of notices, and the watches that fill it.

    Raises OSError where the kernel gives none: EMFILE beyond fs.inotify.max_user_instances.
    """

    def __init__(self) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self._add_watch = libc.inotify_add_watch
        self._add_watch.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_uint32)
        self._rm_watch = libc.inotify_rm_watch
        self._rm_watch.argtypes = (ctypes.c_int, ctypes.c_int)
        self._fd = _checked(libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK))

    def fileno(self) -> int:
        """Readable when there are notices."""
        return self._fd

    def watch(self, directory_fd: int) -> int:
        """Hear of an open directory's files from now on; the number of the watch.

        Raises OSError: ENOSPC beyond fs.inotify.max_user_watches.
        """
        mask = Change.CHANGED | Change.CREATED | Change.REMOVED | _ONLY_DIRECTORIES
        return _checked(self._add_watch(self._fd, b"/proc/self/fd/%d" % directory_fd, mask))

    def forget(self, watch: int) -> None:
        """End a watch. What it said before may still be in the queue; the kernel may have ended it."""
        with contextlib.suppress(OSError):
            _checked(self._rm_watch(self._fd, watch))

    def read(self) -> list[Notice]:
        """Notices that are there now, in their order, at most some hundreds at a time."""
        try:
            data = os.read(self._fd, _ROOM)
        except BlockingIOError:
            return []
        notices, at = [], 0
        while at < len(data):
            watch, change, _, length = _HEAD.unpack_from(data, at)
            at += _HEAD.size
            name = data[at : at + length].partition(b"\0")[0]
            at += length
            notices.append(Notice(watch, change, os.fsdecode(name)))
        return notices

    def close(self) -> None:
        """End all watches. May be called twice."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
