"""An object in a process of its own, which does what it is asked."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

_FORK = multiprocessing.get_context("fork")


class Process:
    """Makes the object there. Raises EOFError, here, where it cannot be made or a method fails."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._ours, theirs = _FORK.Pipe()
        _FORK.Process(target=_serve, args=(make, theirs), daemon=True).start()
        theirs.close()
        self._ours.recv()

    def ask(self, method: str) -> Any:
        """What the method returns. ``close`` ends the process."""
        self._ours.send(method)
        return self._ours.recv()


def _serve(make: Callable[[], Any], pipe: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the parent, which ends this one
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    served = make()
    pipe.send(None)
    method = ""
    while method != "close":
        method = pipe.recv()
        pipe.send(getattr(served, method)())
