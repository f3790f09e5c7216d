"""How far the log was read, kept over restarts of the agent."""

from __future__ import annotations

import msgspec


class Position(msgspec.Struct, frozen=True):
    """The last record that was told, in which boot, and what was known of the clocks by then.

    ``stamp_us`` and ``offset_ns`` are those of `Stamps`; ``wall_ns`` is Unix time.
    """

    boot: str
    sequence: int
    stamp_us: int
    offset_ns: int
    wall_ns: int


def encode(position: Position) -> bytes:
    """For a bookmark."""
    return msgspec.json.encode(position)


def decode(content: bytes | None) -> Position | None:
    """From a bookmark; None where there is none, or where it cannot be read."""
    if content is None:
        return None
    try:
        return msgspec.json.decode(content, type=Position)
    except msgspec.MsgspecError:
        return None
