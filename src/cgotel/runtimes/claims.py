"""Which watcher speaks for the containers of Kubernetes: one death is one exit, whoever else saw it.

containerd keeps Docker's containers in its namespace ``moby`` and those of the CRI in ``k8s.io``. Docker's
watcher always speaks for the former. The CRI's speaks for the latter while it is at work on the same
socket; only within this process can that be known.
"""

from __future__ import annotations

import os

_claimed: set[str] = set()


def claim(socket: str) -> None:
    """The CRI watcher is at work on this socket."""
    _claimed.add(os.path.realpath(socket))


def release(socket: str) -> None:
    """It is no more."""
    _claimed.discard(os.path.realpath(socket))


def claimed(socket: str) -> bool:
    """Whether the CRI watcher is at work on this socket."""
    return os.path.realpath(socket) in _claimed
