"""Reading a kernel file again and again: a kept descriptor, one pread, the reason when it is silent.

A descriptor that is kept costs the kernel about 5 KiB once it was read (its seq_file buffer stays),
charged to the reader's own cgroup; one that is not kept costs an open and a close for each read,
about four times the work. `Descriptors` is the budget between the two.
"""

from __future__ import annotations

import contextlib
import errno
import os
import resource
from collections.abc import Callable, Sequence
from itertools import repeat
from operator import eq
from typing import Any, Generic, TypeVar

from cgotel.kernel.source import State, state_of

T = TypeVar("T")

_FIRST_SIZE = 256
_OPEN = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY  # a pipe in its place must not block
_LARGEST = 64 * 1024 * 1024
_SPARE = 64  # descriptors left to sockets, logs and libraries

_OK = State.OK  # an enum looks its members up anew each time
_pread = os.pread
_FROM_THE_START = repeat(0)


class Descriptors:
    """How many descriptors may be kept open between sweeps; ``free`` is below 0 while one more is open."""

    __slots__ = ("free",)

    def __init__(self, budget: int) -> None:
        self.free = budget

    @classmethod
    def raised(cls, wanted: int) -> Descriptors:
        """Up to ``wanted``, after raising this process's RLIMIT_NOFILE as far as that needs and may be."""
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        target = min(hard, wanted + _SPARE) if hard != resource.RLIM_INFINITY else wanted + _SPARE
        if soft != resource.RLIM_INFINITY and soft < target:
            with contextlib.suppress(ValueError, OSError):
                resource.setrlimit(resource.RLIMIT_NOFILE, (target, hard))
                soft = target
        return cls(wanted if soft == resource.RLIM_INFINITY else max(0, min(wanted, soft - _SPARE)))

    def part(self, wanted: int) -> Descriptors:
        """Hand over up to ``wanted`` of them, and at most half."""
        taken = min(wanted, self.free // 2)
        self.free -= taken
        return Descriptors(taken)


def read_once(name: str, dir_fd: int | None = None) -> bytes:
    """A whole file of any size. Raises OSError."""
    fd = os.open(name, _OPEN, dir_fd=dir_fd)
    try:
        chunks = []
        while chunk := os.read(fd, 65536):
            chunks.append(chunk)
        return b"".join(chunks)
    finally:
        os.close(fd)


class KernelFile(Generic[T]):
    """One file of one directory, parsed when its bytes have changed.

    `read` never raises: where nothing can be read it returns ``empty``; ``state`` and ``reason`` say
    why. Such a file is not asked for again until `retry`. ``last`` is what the last `read` returned.

    ``many`` marks a file that the kernel writes record by record (cgroup.procs): a read may stop where
    its page is full, before the end, and so is followed by more.
    """

    __slots__ = (
        "_data",
        "_descriptors",
        "_dir_fd",
        "_many",
        "_parse",
        "empty",
        "fd",
        "last",
        "name",
        "reason",
        "size",
        "state",
    )

    def __init__(
        self,
        dir_fd: int,
        name: str,
        parse: Callable[[bytes], T],
        empty: T,
        descriptors: Descriptors,
        many: bool = False,
    ) -> None:
        self.name = name
        self.state = State.OK
        self.reason = ""
        self.empty = empty
        self.fd = -1
        self.size = _FIRST_SIZE
        self._dir_fd = dir_fd
        self._parse = parse
        self._descriptors = descriptors
        self._many = many
        self._data: bytes | None = None
        self.last = empty

    def read(self) -> T:
        """What the file says now; ``empty`` where it says nothing."""
        data = self.fetch()
        if data != self._data:
            self._data = data
            self.last = self.empty if data is None else self._parse(data)
        return self.last

    def fetch(self) -> bytes | None:
        """The whole file as it is now, not parsed; None where it says nothing."""
        if self.state is not _OK:
            return None
        try:
            if self.fd < 0:
                self._open()
            data = _pread(self.fd, self.size, 0)
            if len(data) == self.size:
                data = self._more(data)
        except OSError as error:
            self.close()
            self.state = state_of(error)
            self.reason = error.strerror or str(error)
            return None
        if self._descriptors.free < 0:
            self.close()
        return data

    def retry(self) -> None:
        """Ask again for a file that was silent: a controller may have been enabled since."""
        self.state = State.OK

    def absent(self) -> None:
        """Be silent without having asked: the directory does not list it."""
        self.state = State.ABSENT
        self.reason = os.strerror(errno.ENOENT)

    def close(self) -> None:
        """Give the descriptor back."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
            self._descriptors.free += 1

    def _open(self) -> None:
        self.fd = os.open(self.name, _OPEN, dir_fd=self._dir_fd)
        self._descriptors.free -= 1

    def _more(self, start: bytes) -> bytes:
        if self._many:
            return self._records(start)
        while self.size < _LARGEST:  # one larger pread, so that the file is of one instant
            self.size *= 2
            data = os.pread(self.fd, self.size, 0)
            if len(data) < self.size:
                return data
        raise OSError(0, "larger than 64 MiB")

    def _records(self, start: bytes) -> bytes:
        chunks = [start]
        at = len(start)
        while chunk := os.pread(self.fd, 65536, at):
            chunks.append(chunk)
            at += len(chunk)
        return b"".join(chunks)


class JoinedFiles(Generic[T]):
    """Files of one directory that are read one after another and parsed as one text.

    Their texts stand in it in order with a NUL between each two; ``parser`` gives the parser for those
    that are not silent, by name. One parse of all costs half of what one for each does.
    """

    __slots__ = ("_fds", "_files", "_names", "_parse", "_parser", "_sizes", "_text", "empty", "last")

    def __init__(
        self,
        files: Sequence[KernelFile[Any]],
        parser: Callable[[tuple[str, ...]], Callable[[bytes], T]],
        empty: T,
    ) -> None:
        self.empty = empty
        self.last = empty
        self._files = files
        self._parser = parser
        self._parse = parser(())
        self._names: tuple[str, ...] = ()
        self._text = b""
        self._fds: list[int] = []
        self._sizes: list[int] = []

    def read(self) -> T:
        """What the files say now."""
        try:
            texts = list(map(_pread, self._fds, self._sizes, _FROM_THE_START))
        except OSError:
            return self._read_each()
        if not texts or any(map(eq, map(len, texts), self._sizes)):
            return self._read_each()
        return self._taken(b"\0".join(texts))

    def retry(self) -> None:
        """Ask again for files that were silent, at the next `read`."""
        self._fds = []

    def _read_each(self) -> T:
        """File by file: the first time, when one has come, gone or grown, and what is not kept open."""
        texts = [file.fetch() for file in self._files]
        spoken = [file for file, text in zip(self._files, texts, strict=True) if text is not None]
        names = tuple([file.name for file in spoken])
        if names != self._names:
            self._names = names
            self._parse = self._parser(names)
            self._text = b""
            self.last = self.empty
        kept = all(file.fd >= 0 for file in spoken)
        self._fds = [file.fd for file in spoken] if kept else []
        self._sizes = [file.size for file in spoken]
        return self._taken(b"\0".join([text for text in texts if text is not None]))

    def _taken(self, text: bytes) -> T:
        if text != self._text:
            self._text = text
            self.last = self._parse(text)
        return self.last
