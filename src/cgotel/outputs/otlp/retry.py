"""How long to wait before the next try."""

from __future__ import annotations

import random
from collections.abc import Callable

FIRST_S = 1.0
LONGEST_S = 30.0
_JITTER = 0.2


class Backoff:
    """Exponential, with jitter so that a thousand agents do not come back in the same moment.

    A receiver that says when to come back (Retry-After, RetryInfo) is never asked earlier, and at
    most ``patience_s`` later: an absurd number must not end all export.
    """

    def __init__(self, patience_s: float, draw: Callable[[], float] = random.random) -> None:
        self._patience_s = patience_s
        self._draw = draw
        self._tries = 0

    def next_s(self, asked_s: float | None = None) -> float:
        """Seconds until the next try, after one more failure."""
        plain = min(FIRST_S * (1 << self._tries), LONGEST_S)
        if plain < LONGEST_S:
            self._tries += 1
        own_s = plain * (1 - _JITTER + 2 * _JITTER * self._draw())
        return own_s if asked_s is None else max(own_s, min(asked_s, self._patience_s))

    def reset(self) -> None:
        """After a success."""
        self._tries = 0
