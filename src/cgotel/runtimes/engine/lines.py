"""Lines out of a stream whose pieces end where they like."""

from __future__ import annotations

from collections.abc import Iterator

_LONGEST = 4 * 1024 * 1024


class Lines:
    """Puts pieces together again; a line of more than ``longest`` bytes is left out, and counted."""

    def __init__(self, longest: int = _LONGEST) -> None:
        self._longest = longest
        self._held = bytearray()
        self._dropping = False
        self.dropped = 0

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """The lines that this piece completes, each without its end."""
        *ends, rest = piece.split(b"\n")
        for end in ends:
            self._hold(end)
            line, whole = bytes(self._held), not self._dropping
            self._held.clear()
            self._dropping = False
            if whole:
                yield line
        self._hold(rest)

    def _hold(self, part: bytes) -> None:
        if len(self._held) + len(part) > self._longest:
            self.dropped += not self._dropping
            self._dropping = True
            self._held.clear()
        elif not self._dropping:
            self._held += part
