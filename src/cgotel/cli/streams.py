"""The standard streams, whatever the caller has made of them (``cgotel snapshot >&-``, ``>/dev/full``)."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_OF_WRITING = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF, errno.EINVAL})


def reopen_missing() -> None:
    """Lead closed standard streams to /dev/null, so that nothing else is opened in their place."""
    while (fd := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(fd, True)
    os.close(fd)
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - open as long as the process
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115


@contextmanager
def given_back(claimed: int | None) -> Iterator[None]:
    """Standard output is again what it was before `claim_standard_output`; afterwards no longer.

    So that a plugin's last words do not follow the answer. None: it was not claimed.
    """
    if claimed is None:
        yield
        return
    with suppress(OSError):
        sys.stdout.flush()  # what was printed meanwhile is not of the answer
    os.dup2(claimed, 1)
    try:
        yield
    finally:
        os.dup2(2, 1)


def settle() -> None:
    """Write what standard output still buffers, or let it go: the interpreter's end would fail on it."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):  # closed by whoever failed to write there
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.close(nowhere)


def place_of(error: OSError) -> str:
    """What an error is about: a file, or standard output where it can only be of writing."""
    if error.filename is not None:
        return os.fsdecode(error.filename)
    return "standard output" if error.errno in _OF_WRITING else type(error).__name__
