"""Single values, limits, lists and process ids: what stands there comes out, nothing else does."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cgotel.kernel.formats import (
    INT64_MAX,
    Processes,
    count_list,
    number,
    processes,
    quota_and_period,
    single,
    whole,
)

whole_numbers = st.integers(0, INT64_MAX)
garbage = st.binary(max_size=60) | st.text("0123456789max -,.\n\r\t=", max_size=30).map(str.encode)


@given(whole_numbers)
def test_a_whole_number_comes_back(value: int) -> None:
    assert whole(b"%d" % value) == number(b"%d" % value) == single(b"%d\n" % value) == value


@given(st.integers(0, 10**15 - 1), st.integers(0, 99))
def test_a_percentage_comes_back(units: int, hundredths: int) -> None:
    token = b"%d.%02d" % (units, hundredths)
    assert number(token) == float(token)
    assert whole(token) is None


@pytest.mark.parametrize(
    "token",
    [
        b"", b"max", b"-1", b"+1", b"1e3", b"0x10", b"1_000", b" 1", b"1 ", b"1\r", b"1\n",
        b"\xb2", b"\xd9\xa3", b"nan", b"inf", b"1.", b".5", b"1.2.3", b"-0.5", b"%d" % 2**63, b"%d" % 2**64,
        b"9" * 5000, b"0." + b"9" * 5000,
    ],
)  # fmt: skip
def test_what_is_no_number_of_the_kernel_is_none(token: bytes) -> None:
    assert whole(token) is None
    assert number(token) is None
    assert single(token + b"\n") is None


@given(whole_numbers)
def test_a_single_value_that_is_cut_anywhere_is_none(value: int) -> None:
    data = b"%d\n" % value
    assert all(single(data[:end]) is None for end in range(len(data)))


@given(st.none() | whole_numbers, st.integers(1, INT64_MAX))
def test_cpu_max_comes_back_and_is_none_when_cut_anywhere(quota: int | None, period: int) -> None:
    data = b"%s %d\n" % (b"max" if quota is None else b"%d" % quota, period)
    assert quota_and_period(data) == (quota, period)
    assert all(quota_and_period(data[:end]) is None for end in range(len(data)))


@pytest.mark.parametrize(
    "data",
    [
        b"", b"\n", b"max\n", b"max max\n", b"100000 max\n", b"max 0\n", b"0 0\n", b"-1 100000\n", b"1 2 3\n",
        b"max  100000\n", b"max\n100000\n", b"maximum 100000\n", b"max 100000\r\n", b"50000.0 100000\n",
        b"%d 100000\n" % 2**63, b"100000 %d\n" % 2**63,
    ],
)  # fmt: skip
def test_a_cpu_max_that_no_kernel_prints_is_none(data: bytes) -> None:
    assert quota_and_period(data) is None


@given(st.sets(st.integers(0, 8191), max_size=60))
def test_a_list_names_as_many_ids_as_went_in(members: set[int]) -> None:
    data = _id_list(members)
    assert count_list(data) == len(members)
    assert all(count_list(data[:end]) is None for end in range(len(data)))


@pytest.mark.parametrize(
    "data",
    [
        b"", b" \n", b"0-\n", b"-3\n", b"3-1\n", b"0--3\n", b"0,\n", b",0\n", b"0,,1\n", b"0-3,2-5\n",
        b"1,0\n", b"0,0\n", b"0-3\n7\n", b"0-3 7\n", b"0-3\r\n", b"max\n", b"0x1\n",
        b"0-%d\n" % INT64_MAX, b"0-%d\n" % 2**64, b"0-" + b"9" * 5000 + b"\n",
    ],
)  # fmt: skip
def test_a_list_that_no_kernel_prints_is_none(data: bytes) -> None:
    assert count_list(data) is None


@given(st.lists(st.integers(0, 4 * 1024**2), max_size=200))
def test_every_process_counts_and_the_visible_have_ids(pids: list[int]) -> None:
    data = b"".join(b"%d\n" % pid for pid in pids)
    visible, hidden = frozenset(pids) - {0}, pids.count(0)
    assert processes(data) == Processes(len(visible) + hidden, None if hidden else visible)


def test_no_process_is_none_of_them_and_not_unknown() -> None:
    assert processes(b"") == Processes(0, frozenset())


@given(st.lists(st.integers(1, 4 * 1024**2), min_size=1, max_size=20), st.data())
def test_a_list_of_processes_that_is_cut_within_a_line_is_none(pids: list[int], data: st.DataObject) -> None:
    """A shorter list would be a wrong count, and its missing processes would seem to have ended."""
    text = b"".join(b"%d\n" % pid for pid in pids)
    end = data.draw(st.integers(1, len(text) - 1).filter(lambda end: text[end - 1] != ord("\n")))
    assert processes(text[:end]) is None


@pytest.mark.parametrize(
    "data",
    [b"\n", b"1\n\n", b" 1\n", b"1 2\n", b"-1\n", b"1\r\n", b"x\n", b"12345678901\n", b"9" * 5000 + b"\n"],
)
def test_a_list_of_processes_that_no_kernel_prints_is_none(data: bytes) -> None:
    assert processes(data) is None


@given(garbage)
@example(b"\xff" * 40)
@example(b"0" * 5000 + b"\n")
def test_garbage_raises_nothing_and_gives_no_number_out_of_range(data: bytes) -> None:
    limits = quota_and_period(data) or (None, None)
    alive = processes(data)
    for value in (whole(data), single(data), count_list(data), *limits, alive and alive.count):
        assert value is None or 0 <= value <= INT64_MAX


def _id_list(members: set[int]) -> bytes:
    """As the kernel prints a set (lib/vsprintf.c, bitmap_list_string): ``0-3,7``."""
    runs: list[list[int]] = []
    for member in sorted(members):
        if runs and member == runs[-1][1] + 1:
            runs[-1][1] = member
        else:
            runs.append([member, member])
    return ",".join(f"{a}-{b}" if a != b else f"{a}" for a, b in runs).encode() + b"\n"
