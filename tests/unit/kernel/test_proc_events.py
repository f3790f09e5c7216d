"""Messages of the process connector, recorded on Linux 6.18 (cn_proc.h)."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cgotel.kernel.proc_events import Ended, Executed, Forked, Renamed, _happening

HEAD = struct.pack("=IHHII IIIIHH", 76, 3, 0, 0, 0, 1, 1, 7, 0, 40, 0)


def message(what: int, *fields: int, comm: bytes = b"") -> bytes:
    event = struct.pack("=IIQ", what, 1, 2489240220307) + struct.pack(f"={len(fields)}I", *fields) + comm
    return HEAD + event.ljust(40, b"\0")


@pytest.mark.parametrize(
    ("data", "meant"),
    [
        (message(1, 10, 10, 11, 11), Forked(2489240220307, 11, 10)),
        (message(2, 11, 11), Executed(2489240220307, 11)),
        (message(0x200, 11, 11, comm=b"a b\n]"), Renamed(2489240220307, 11, b"a b\n]")),
        (message(0x80000000, 11, 11, 0x8900, 17, 10, 10), Ended(2489240220307, 11, 0x8900, 10)),
        (message(0x80000000, 11, 11, 9, 17, 0, 0), Ended(2489240220307, 11, 9, None)),
        (message(0x80000000, 11, 11, 139, 17, 10, 10)[:68], Ended(2489240220307, 11, 139, None)),
        (message(0x40, 11, 11, 0, 0), None),
        (b"", None),
    ],
)
def test_what_a_message_means(data: bytes, meant: object) -> None:
    assert _happening(data) == meant


@given(st.binary(max_size=100))
def test_any_bytes_are_taken(data: bytes) -> None:
    _happening(data)
