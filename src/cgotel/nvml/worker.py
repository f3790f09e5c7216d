"""The one thread that talks to NVML: a call that hangs costs its own answers, and nothing else.

A call that is stuck in the driver cannot be cancelled, so nobody waits for it beyond a deadline, and
no second one is made meanwhile. The thread is a daemon: a process may end while it hangs.
"""

from __future__ import annotations

import os
import threading
import time

from cgotel.nvml.session import Session, Snapshot

_IDLE_S = 1.0


class Worker:
    """Looks when asked."""

    def __init__(self, session: Session) -> None:
        self.timeouts = 0
        """Looks that were not done in time."""
        self._session = session
        self._changed = threading.Condition()
        self._asked = 0
        self._done = 0
        self._stop = False
        self._snapshot: Snapshot | None = None
        self._pid = os.getpid()
        self._thread = threading.Thread(target=self._work, name="cgotel-nvml", daemon=True)
        self._thread.start()

    @property
    def usable(self) -> bool:
        """Whether its thread runs, in this very process: none is taken along by fork()."""
        return self._pid == os.getpid() and self._thread.is_alive()

    def look(self, timeout_s: float) -> Snapshot | None:
        """What the GPUs say now; None where that took too long, or a look before still hangs."""
        with self._changed:
            if self._done == self._asked:
                self._asked += 1
                self._changed.notify_all()
            else:  # stuck: its late answer is nobody's
                timeout_s = 0.0
            wanted = self._asked
            if not self._changed.wait_for(lambda: self._done >= wanted, timeout_s):
                self.timeouts += 1
                return None
            return self._snapshot

    def close(self, timeout_s: float = 2.0) -> None:
        """Let go of the GPUs, as far as the driver lets us in time."""
        with self._changed:
            self._stop = True
            self._changed.notify_all()
        if self._pid == os.getpid():
            self._thread.join(timeout_s)

    def _work(self) -> None:
        try:
            while self._is_wanted():
                snapshot = self._session.look(time.monotonic_ns())
                with self._changed:
                    self._snapshot, self._done = snapshot, self._asked
                    self._changed.notify_all()
        finally:
            self._session.close()

    def _is_wanted(self) -> bool:
        """Wait for the next look; False when it is time to end."""
        while True:
            with self._changed:
                if self._changed.wait_for(lambda: self._stop or self._done < self._asked, _IDLE_S):
                    return not self._stop
            self._session.rest()
