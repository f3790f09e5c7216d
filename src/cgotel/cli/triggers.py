"""What Telegraf's ``execd`` does to ask its child for a batch, in every mode that it has.

``signal = "STDIN"`` writes a newline, ``"SIGHUP"``, ``"SIGUSR1"`` and ``"SIGUSR2"`` send that signal,
``"none"`` asks for nothing: there the child has an interval of its own. Whichever it is, the end of
standard input and SIGTERM are the end of the child. Source: Telegraf, plugins/inputs/execd.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Iterator

ASKING = (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
ENDING = (signal.SIGTERM, signal.SIGINT)

PATIENCE_S = 3
"""Seconds that a sweep may still take when the end is asked for: Telegraf kills after 5 more."""

_AT_ONCE = 65536


class Triggers:
    """Iterates over triggers until the end; those that came during a sweep are one.

    ``interval_s`` gives triggers of its own, the first one at once. Takes the signals of the process
    at its making, which is for the main thread; to be made once.
    """

    def __init__(self, interval_s: float | None = None, standard_input: int = 0) -> None:
        self._interval_s = interval_s
        self._input = standard_input
        self._signals, wakeup = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
        for number in ASKING:
            signal.signal(number, _noted)
        for number in ENDING:
            signal.signal(number, _last_call)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ASKING)
        self._poll = select.poll()
        for descriptor in (self._input, self._signals):
            self._poll.register(descriptor, select.POLLIN)

    def __iter__(self) -> Iterator[None]:
        due = time.monotonic()
        while True:
            asked, ended = self._heard(self._wait(due))
            if ended:
                return
            late_s = time.monotonic() - due
            if self._interval_s is not None and late_s >= 0:
                asked = True
                due += self._interval_s * (1 + late_s // self._interval_s)
            if asked:
                yield

    def _wait(self, due: float) -> set[int]:
        """The descriptors that have something to say; none where the own interval is over."""
        left_ms = None if self._interval_s is None else max(0.0, due - time.monotonic()) * 1000
        return {descriptor for descriptor, _ in self._poll.poll(left_ms)}

    def _heard(self, ready: set[int]) -> tuple[bool, bool]:
        """Whether a batch is asked for, and whether this is the end."""
        asked = ended = False
        if self._signals in ready:
            numbers = os.read(self._signals, _AT_ONCE)
            asked = any(number in numbers for number in ASKING)
            ended = any(number in numbers for number in ENDING)
        if self._input in ready:
            text = _read(self._input)
            asked |= b"\n" in text
            ended |= not text
        return asked, ended


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, _AT_ONCE)
    except OSError:  # closed from the start
        return b""


def _noted(_number: int, _frame: object) -> None:
    """The number of the signal is in the wakeup pipe; this only keeps it from its default action."""


def _last_call(_number: int, _frame: object) -> None:
    """As `_noted`; should a collector never return, SIGALRM ends the process without asking anybody."""
    signal.alarm(PATIENCE_S)
