"""The little of Protocol Buffers' wire format that is needed to put serialised messages together.

Everything with a structure of its own is serialised by the classes of opentelemetry-proto; here is
only what nests one message in another. Source: https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

VARINT = 0
FIXED64 = 1
LENGTH_DELIMITED = 2


def varint(number: int) -> bytes:
    """A non-negative integer, seven bits a byte, the lowest first."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def key(field: int, wire_type: int) -> bytes:
    """What stands before a field's value."""
    return varint(field << 3 | wire_type)


def head(field: int, length: int) -> bytes:
    """What stands before an embedded message of so many bytes."""
    return key(field, LENGTH_DELIMITED) + varint(length)


def records(message: bytes) -> list[bytes]:
    """The fields of a message that holds embedded messages only, each with its head."""
    found = []
    start = 0
    while start < len(message):
        _, at = _read_varint(message, start)
        length, at = _read_varint(message, at)
        found.append(message[start : at + length])
        start = at + length
    return found


def _read_varint(message: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = message[at]
        number |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return number, at
        shift += 7
