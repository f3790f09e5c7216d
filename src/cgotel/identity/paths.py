"""A cgroup path's names: split, made valid text, and freed from systemd's escapes."""

from __future__ import annotations

import re

_ESCAPE = re.compile(rb"\\x(?!00)([0-9a-fA-F]{2})")


def split(path: str) -> list[str]:
    """The names from the cgroup root to this cgroup; none for the root itself."""
    return [name for name in path.split("/") if name]


def text(name: str) -> str:
    """A name as valid UTF-8; a byte that is none becomes ``\\xNN``."""
    return _bytes(name).decode("utf-8", "backslashreplace")


def unescaped(name: str) -> str:
    """A name without systemd's ``\\xNN`` escapes (unit_name_escape(3) writes one for each such byte)."""
    plain = _ESCAPE.sub(lambda match: bytes.fromhex(match[1].decode()), _bytes(name))
    return plain.decode("utf-8", "backslashreplace")


def _bytes(name: str) -> bytes:
    try:
        return name.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # a surrogate that no byte stands behind: not from os.fsdecode()
        return name.encode("utf-8", "backslashreplace")
