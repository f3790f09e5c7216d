"""Waiting for what another process does."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_POLL_S = 0.02


def eventually(probe: Callable[[], T | None], timeout_s: float, wanted: str) -> T:
    """The first true answer of ``probe``; fails the test when none comes in time."""
    deadline = time.monotonic() + timeout_s
    while not (found := probe()):
        assert time.monotonic() < deadline, f"not within {timeout_s:g} s: {wanted}"
        time.sleep(_POLL_S)
    return found
