"""What a watcher reported, made fit to be kept and judged: a plugin may report anything."""

from __future__ import annotations

from typing import Any

import msgspec

from cgotel.evidence import AnyEvidence

_MOST_BYTES = 65_536
_MOST_TEXT_BYTES = 4_096  # no path is longer (PATH_MAX, limits.h)
_NUMBERS = ("pid", "code", "signal")
_LAST_NS = 1 << 62  # in the year 2116
_LEAST, _MOST = -(1 << 31), 1 << 32

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(AnyEvidence).decode


def taken_in(piece: object) -> AnyEvidence:
    """The same piece, its fields of the kinds that they are declared to be.

    Text that no UTF-8 can hold is escaped, and what is far too long is cut. Raises `TypeError`,
    `ValueError` (`msgspec.ValidationError` is one) or `OverflowError` where it is no evidence.
    """
    if not isinstance(piece, AnyEvidence):
        raise TypeError(f"a watcher reported {repr(piece)[:200]}, which is no kind of evidence")
    try:
        content = _encode(piece)
    except UnicodeEncodeError:
        content = b""
    if not content or len(content) > _MOST_BYTES:
        content = _encode(_tame(msgspec.to_builtins(piece)))
    if len(content) > _MOST_BYTES:
        raise ValueError(f"a watcher reported evidence of {len(content)} bytes")
    sound: AnyEvidence = _decode(content)
    if not 0 <= sound.time_ns <= _LAST_NS:
        raise ValueError(f"a watcher reported evidence of the time {sound.time_ns}")
    for name in _NUMBERS:
        number = getattr(sound, name, None)
        if number is not None and not _LEAST <= number < _MOST:
            raise ValueError(f"a watcher reported evidence with the {name} {number}")
    return sound


def _tame(value: Any) -> Any:
    if isinstance(value, str):
        encoded = value[:_MOST_TEXT_BYTES].encode("utf-8", "backslashreplace")
        return encoded[:_MOST_TEXT_BYTES].decode("utf-8", "ignore")
    if isinstance(value, dict):
        return {_tame(key): _tame(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_tame(inner) for inner in value]
    return value
