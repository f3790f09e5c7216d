"""An attempt that runs a program: no shell, a process group of its own, bounded output, a hard end."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Sequence

from cgotel.watchers.probes.attempt import LONGEST_TEXT, Outcome

_KEPT = 4096
_LAST_S = 2.0


class CommandAttempt:
    """A program ends with status 0 in time.

    It sees PATH, a plain locale and nothing else of the agent's environment, which may hold secrets. At
    its end, or when its time is up, its whole process group is killed: what it left running as well.
    """

    def __init__(self, words: Sequence[str], timeout_s: float) -> None:
        self._words = list(words)
        self._timeout_s = timeout_s
        self._stop, self._stopper = -1, -1
        self._cancelled = threading.Event()

    def run(self) -> Outcome:
        """Run it. Raises OSError where it cannot be started, TimeoutError where it had to be killed."""
        child = subprocess.Popen(  # noqa: S603 - what the configuration names, never anything else
            self._words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8"},
            cwd="/",
            start_new_session=True,
        )
        assert child.stdout is not None
        with child.stdout as pipe:
            os.set_blocking(pipe.fileno(), False)
            said, in_time = self._listen(child.pid, pipe.fileno())
            _kill_group(child.pid)  # before it is reaped: until then nobody else can have its number
        status = child.wait(_LAST_S)
        if not in_time:
            raise TimeoutError
        text = said.decode("utf-8", "backslashreplace").strip()
        how = f"signal {-status}" if status < 0 else f"exit status {status}"
        return Outcome(status == 0, f"{how}: {text}"[:LONGEST_TEXT] if text else how)

    def cancel(self) -> None:
        """Its time is up at once."""
        self._cancelled.set()

    def _listen(self, pid: int, pipe: int) -> tuple[bytes, bool]:
        """What it says until it ends, and whether it did in time; what is too much is read and forgotten."""
        until = time.monotonic() + self._timeout_s
        said = b""
        ended = os.pidfd_open(pid)
        try:
            poll = select.poll()
            poll.register(ended, select.POLLIN)
            poll.register(pipe, select.POLLIN)
            while (left_s := until - time.monotonic()) > 0 and not self._cancelled.is_set():
                ready = dict(poll.poll(min(left_s, 0.5) * 1000 + 1))
                if pipe in ready:
                    chunk = _read(pipe)
                    said += chunk[: _KEPT - len(said)]
                    if not chunk:
                        poll.unregister(pipe)
                if ended in ready:
                    return (said + _read(pipe))[:_KEPT], True
            return said, False
        finally:
            os.close(ended)


def _read(pipe: int) -> bytes:
    with contextlib.suppress(BlockingIOError):
        return os.read(pipe, 65536)
    return b""


def _kill_group(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)
