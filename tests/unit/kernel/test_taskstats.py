"""Records of the kernel's accounting, as struct taskstats lays them out (include/uapi/linux/taskstats.h)."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cgotel.kernel.taskstats import ExitRecord, record


def attribute(kind: int, value: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)


def message(version: int, shift: int, peak_kib: int, comm: bytes = b"python3") -> bytes:
    stats = bytearray(416)
    struct.pack_into("=H", stats, 0, version)
    stats[80 + shift : 80 + shift + len(comm)] = comm
    struct.pack_into("=Q", stats, 200 + shift, peak_kib)
    inner = attribute(1, struct.pack("=I", 4711)) + attribute(3, bytes(stats))
    body = struct.pack("=BBH", 2, 1, 0) + attribute(4, inner)
    return struct.pack("=IHHII", 16 + len(body), 24, 0, 0, 0) + body


@pytest.mark.parametrize(("version", "shift"), [(12, 0), (13, 0), (14, 0), (15, 48), (16, 0)])
def test_the_peak_and_the_name_of_a_thread_that_ended(version: int, shift: int) -> None:
    assert record(message(version, shift, 2048)) == ExitRecord(4711, b"python3", 2 << 20)


def test_a_thread_of_the_kernel_has_no_peak() -> None:
    assert record(message(13, 0, 0, b"kworker/0:1")) == ExitRecord(4711, b"kworker/0:1", None)


@given(st.integers(0, 480))
def test_a_message_that_is_cut_is_none(size: int) -> None:
    whole = message(13, 0, 2048)
    assert record(whole[: min(size, len(whole) - 1)]) is None


@given(st.binary(max_size=80))
def test_any_bytes_are_taken(data: bytes) -> None:
    record(message(13, 0, 1)[:20] + data)
