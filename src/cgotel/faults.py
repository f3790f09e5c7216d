"""Faults of parts that must not stop the others: each counted, each new one told once."""

from __future__ import annotations

import logging

log = logging.getLogger(__name__)


class Faults:
    """Counts what one part raised; logs a fault when it differs from the one before."""

    def __init__(self, who: str) -> None:
        self.count = 0
        self._who = who
        self._last = ""

    def note(self, error: BaseException) -> None:
        """Count a fault and, if it is news, log it in one line (with its trace when debugging)."""
        self.count += 1
        text = f"{type(error).__name__}: {error}"
        if text != self._last:
            self._last = text
            log.error("%s: %s", self._who, text, exc_info=error if log.isEnabledFor(logging.DEBUG) else None)
