"""Work in a thread of its own, one piece at a time: whoever asks waits no longer than it likes.

A read of a kernel file cannot be interrupted: where one blocks, this thread blocks with it, and
collectd's reader thread does not.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from cgotel.clock import now
from cgotel.faults import Faults

T = TypeVar("T")


class Background(Generic[T]):
    """Does ``work`` once for each `ask` and keeps what came of it until `take`."""

    def __init__(self, work: Callable[[], T], done: Callable[[], None]) -> None:
        self._work = work
        self._done = done
        self._faults = Faults("sweep")
        self._changed = threading.Condition()
        self._asked = False
        self._stopping = False
        self._result: T | None = None
        self._began_ns: int | None = None
        self._thread = threading.Thread(target=self._run, name="cgotel", daemon=True)

    def start(self) -> None:
        """Begin; to be called where threads live on, after the daemon's fork."""
        self._thread.start()

    def ask(self) -> bool:
        """Ask for one more piece; False while one is still being worked on: no other follows it."""
        with self._changed:
            if self._began_ns is not None:
                return False
            self._asked = True
            self._began_ns = now().monotonic_ns
            self._changed.notify_all()
            return True

    def take(self, timeout_s: float) -> T | None:
        """What came of it, once; None where nothing has within the time."""
        with self._changed:
            self._changed.wait_for(lambda: self._result is not None or self._began_ns is None, timeout_s)
            result, self._result = self._result, None
            return result

    def busy_s(self) -> float:
        """For how many seconds it has worked on the present piece; 0 between pieces."""
        began_ns = self._began_ns
        return 0.0 if began_ns is None else (now().monotonic_ns - began_ns) / 1e9

    def stop(self, timeout_s: float) -> bool:
        """End the thread, and let go of what it holds; False where its work did not end in time."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            while self._wait():
                result = self._worked()
                with self._changed:
                    self._result, self._began_ns = result, None
                    self._changed.notify_all()
        finally:
            self._done()

    def _worked(self) -> T | None:
        try:
            return self._work()
        except Exception as error:  # noqa: BLE001 - the thread must outlive a fault
            self._faults.note(error)
            return None

    def _wait(self) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: self._asked or self._stopping)
            self._asked = False
            return not self._stopping
