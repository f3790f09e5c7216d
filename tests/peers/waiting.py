"""Waiting for what another process does."""

from __future__ import annotations

import ctypes
import os
import select
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

_POLL_S = 0.02
_IN_ACCESS = 1  # inotify(7)


def eventually(probe: Callable[[], T | None], timeout_s: float, wanted: str) -> T:
    """The first true answer of ``probe``; fails the test when none comes in time."""
    deadline = time.monotonic() + timeout_s
    while not (found := probe()):
        assert time.monotonic() < deadline, f"not within {timeout_s:g} s: {wanted}"
        time.sleep(_POLL_S)
    return found


def until_read(path: Path, timeout_s: float = 20.0) -> None:
    """Wait until another process reads from a file; what it reads is what the file holds by now."""
    libc = ctypes.CDLL(None, use_errno=True)
    inotify = libc.inotify_init1(os.O_CLOEXEC)
    try:
        assert libc.inotify_add_watch(inotify, os.fsencode(path), _IN_ACCESS) >= 0, os.strerror(
            ctypes.get_errno()
        )
        ready, _, _ = select.select([inotify], [], [], timeout_s)
        assert ready, f"not within {timeout_s:g} s: {path} is read"
    finally:
        os.close(inotify)
