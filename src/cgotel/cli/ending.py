"""The end of a command that runs until it is told to stop, told by a signal at any moment.

A signal handler must take no lock: it may interrupt the very code that holds it. So the handlers do
nothing, Python's wakeup descriptor carries the number, and a thread of its own takes it from there.
That thread also sees to it that the end comes, though a collector or an output never returns.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
PATIENCE_S = 10.0

HARD_END_STATUS = 1


class Ending:
    """``event`` is set by SIGTERM, SIGINT or SIGHUP; made once, by the main thread, before all else.

    If the process is still there `PATIENCE_S` seconds later, what it is ``busy_with`` is said and it
    ends with status 1. A second SIGINT, which is a person's, ends it at once with status 130.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self.event = threading.Event()
        self.busy_with: Callable[[], str] = lambda: "the start"
        self._say = say
        self._readable, wakeup = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(wakeup, False)
        signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
        for number in SIGNALS:
            signal.signal(number, _noted)
        threading.Thread(target=self._watch, name="ending", daemon=True).start()

    def _watch(self) -> None:
        interrupts = 0
        while True:
            interrupts += os.read(self._readable, 4096).count(signal.SIGINT)
            if interrupts > 1:
                os._exit(128 + signal.SIGINT)
            if not self.event.is_set():
                self.event.set()
                hard_end = threading.Timer(PATIENCE_S, self._end_hard)
                hard_end.daemon = True
                hard_end.start()

    def _end_hard(self) -> None:
        self._say(f"{self.busy_with()} does not return: ended without it")
        os._exit(HARD_END_STATUS)


def _noted(_number: int, _frame: object) -> None:
    """The number of the signal is in the wakeup pipe; this only keeps it from its default action."""
