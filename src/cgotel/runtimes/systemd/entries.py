"""Entries of the journal as ``journalctl --output=json`` prints them (systemd.journal-fields(7)).

Fields that begin with ``_`` are written by journald itself and cannot be forged by who logs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

_MOST_BYTES = 4096

FIELDS = (
    "MESSAGE", "MESSAGE_ID", "_PID", "_COMM", "_SYSTEMD_UNIT", "_SOURCE_REALTIME_TIMESTAMP",
    "UNIT", "INVOCATION_ID", "EXIT_CODE", "EXIT_STATUS", "UNIT_RESULT",
)  # fmt: skip
"""What is asked for; journalctl adds the cursor and the stamps."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry; ``wall_ns`` is the wall clock when journald took it. Absent fields are not there."""

    cursor: str
    wall_ns: int
    fields: Mapping[str, str]

    def get(self, name: str) -> str:
        """One field, empty where it is absent."""
        return self.fields.get(name, "")


def read_entry(line: bytes) -> Entry | None:
    """One line of JSON, None where it is no entry.

    A field that is no plain text is a list of bytes, one that occurs twice a list of values; one that
    is longer than 4096 bytes is null (src/shared/logs-show.c).
    """
    try:
        found = msgspec.json.decode(line, type=dict[str, object])
        wall_ns = int(str(found.get("__REALTIME_TIMESTAMP"))) * 1000
    except (msgspec.DecodeError, ValueError):
        return None
    cursor = found.get("__CURSOR")
    if not isinstance(cursor, str):
        return None
    fields = {name: text for name in FIELDS if (text := _text(found.get(name))) is not None}
    return Entry(cursor, wall_ns, fields)


def _text(value: object) -> str | None:
    if isinstance(value, str):
        return value[:_MOST_BYTES]
    if not isinstance(value, list) or not value:
        return None
    if all(isinstance(item, int) and 0 <= item < 256 for item in value):
        return bytes(value[:_MOST_BYTES]).decode("utf-8", "backslashreplace")
    return _text(value[0])
