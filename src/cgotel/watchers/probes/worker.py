"""A thread for each probe: one that hangs keeps no other waiting."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from cgotel.watchers.probes.attempt import LONGEST_TEXT, Attempt, Outcome


@dataclass(frozen=True, slots=True)
class Done:
    """An attempt that came back, however late, and how long it took, in seconds."""

    attempt: Attempt
    outcome: Outcome
    latency_s: float


Give: TypeAlias = Callable[[Done], None]


class Worker:
    """Runs attempts one after the other. The thread begins with the first."""

    def __init__(self, name: str) -> None:
        self._jobs: queue.SimpleQueue[tuple[Attempt, Give] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name=f"cgotel-probe-{name}"[:60], daemon=True)

    def start(self, attempt: Attempt, give: Give) -> None:
        """Run it, and ``give`` what became of it."""
        if not self._thread.ident:
            self._thread.start()
        self._jobs.put((attempt, give))

    def close(self) -> None:
        """End the thread as soon as it has come back."""
        self._jobs.put(None)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            attempt, give = job
            began = time.monotonic_ns()
            outcome = _outcome(attempt)
            give(Done(attempt, outcome, (time.monotonic_ns() - began) / 1e9))


def _outcome(attempt: Attempt) -> Outcome:
    try:
        return attempt.run()
    except TimeoutError:
        return Outcome(False, "not in time")
    except Exception as error:  # noqa: BLE001 - whatever is wrong with the answer, it is none
        said = str(error) or type(error).__name__
        return Outcome(False, said[:LONGEST_TEXT])
