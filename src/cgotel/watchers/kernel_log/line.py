"""A whole line of the kernel, with the time it stands for."""

from __future__ import annotations

from typing import NamedTuple

NAME = "kernel_log"
"""The watcher's name, and the source of its evidence."""

SECOND = 10**9


class Line(NamedTuple):
    """``text`` without its newline; ``time_ns`` on the agent's timeline; ``sequence`` of its first record."""

    sequence: int
    time_ns: int
    uncertainty_ns: int
    text: str
