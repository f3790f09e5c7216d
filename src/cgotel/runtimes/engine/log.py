"""The end of a container's log, out of the stream in which an engine sends it."""

from __future__ import annotations

TAIL = 64 * 1024
_HEAD = 8


class LogTail:
    """Takes a log in pieces and keeps its last 64 KiB.

    Without a terminal each write comes in a frame: one byte for the stream (0 to 2), three of zero,
    four for the length, big-endian (moby, api/types/container: "Stream format"). With one it is bare.
    What does not look like a frame is taken for text.
    """

    def __init__(self, framed: bool) -> None:
        self._framed = framed
        self._head = bytearray()
        self._left = 0
        self._kept = bytearray()

    def feed(self, piece: bytes) -> None:
        """Take the next piece, which may end anywhere."""
        if not self._framed:
            self._keep(piece)
            return
        at = 0
        while at < len(piece):
            if self._left:
                end = min(len(piece), at + self._left)
                self._keep(piece[at:end])
                self._left -= end - at
                at = end
                continue
            end = at + _HEAD - len(self._head)
            self._head += piece[at:end]
            at = end
            if len(self._head) == _HEAD:
                self._open_frame()
                if not self._framed:
                    self._keep(piece[at:])
                    return

    def text(self) -> bytes:
        """What was kept."""
        return bytes(self._kept[-TAIL:])

    def _open_frame(self) -> None:
        if self._head[0] > 2 or any(self._head[1:4]):
            self._framed = False
            self._keep(bytes(self._head))
        self._left = int.from_bytes(self._head[4:], "big")
        self._head.clear()

    def _keep(self, part: bytes) -> None:
        self._kept += part[-TAIL:]
        if len(self._kept) > 2 * TAIL:
            del self._kept[:-TAIL]
