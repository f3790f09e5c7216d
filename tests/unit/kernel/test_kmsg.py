"""Records of /dev/kmsg: whole ones come out as printed, torn ones do not, and nothing blocks."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cgotel.kernel.kmsg import Kmsg, NotTheLog, Record, parse, unescaped

# Linux 6.18, and Documentation/ABI/testing/dev-kmsg
LINE = b"6,339,5140900,-;NET: Registered PF_INET6 protocol family\n"
WITH_DICTIONARY = b"3,1057,2183591,-;e1000e 0000:00:19.0: irq 43\n SUBSYSTEM=pci\n DEVICE=+pci:0000:00:19.0\n"
FRAGMENT = b"6,342,5140911,c,caller=T12,new=1;,oom_memcg=/a\\x5cb\n"


def test_records_of_every_shape() -> None:
    assert parse(LINE) == Record(339, 5140900, 0, False, b"", b"NET: Registered PF_INET6 protocol family")
    assert parse(WITH_DICTIONARY).text == b"e1000e 0000:00:19.0: irq 43"
    assert parse(FRAGMENT) == Record(342, 5140911, 0, True, b"T12", b",oom_memcg=/a\\x5cb")


def test_what_user_space_wrote_has_a_facility() -> None:
    assert parse(b"12,798,2099205301,-;Out of memory: Killed process 1 (init)\n").facility == 1
    assert parse(b"30,798,1,-;systemd[1]: hello\n").facility == 3


@given(st.sampled_from([LINE, WITH_DICTIONARY, FRAGMENT]), st.integers(0, 200))
def test_a_torn_record_is_none_or_has_its_whole_text(data: bytes, end: int) -> None:
    found = parse(data[:end])
    assert found is None or found == parse(data)


@given(st.binary(max_size=80) | st.text("0123456789,;-c\n ", max_size=40).map(str.encode))
def test_garbage_never_raises(data: bytes) -> None:
    found = parse(data)
    assert found is None or found.sequence >= 0


@given(st.text(max_size=40))
def test_text_comes_back_as_the_kernel_escapes_it(text: str) -> None:
    raw = text.encode("utf-8", "replace")
    escaped = b"".join(bytes((c,)) if 32 <= c < 127 and c != 92 else b"\\x%02x" % c for c in raw)
    assert unescaped(escaped) == raw.decode()


def test_what_is_no_utf8_stays_escaped_and_can_be_encoded() -> None:
    assert unescaped(b"a\\xffb\\x0ac\\xzz") == "a\\xffb\nc\\xzz"
    unescaped(b"\\xff\\xed\\xa0\\x80").encode()


def test_a_mask_is_not_the_log(tmp_path: Path) -> None:
    (tmp_path / "kmsg").write_bytes(LINE)
    for path in ("/dev/null", str(tmp_path / "kmsg"), str(tmp_path)):
        with pytest.raises(NotTheLog):
            Kmsg.open(path)
    with pytest.raises(FileNotFoundError):
        Kmsg.open(str(tmp_path / "none"))


def test_reading_ends_where_the_log_does_and_goes_on_when_it_grows() -> None:
    reading, writing = os.pipe2(os.O_DIRECT | os.O_NONBLOCK)
    log = Kmsg(reading)
    assert list(log.read()) == []
    os.write(writing, LINE)
    os.write(writing, FRAGMENT)
    assert list(log.read()) == [LINE, FRAGMENT]
    os.close(writing)
    with pytest.raises(OSError, match="ended"):
        list(log.read())
    log.close()
    log.close()


@pytest.mark.skipif(not os.access("/dev/kmsg", os.R_OK), reason="this machine does not show its log")
def test_the_real_log_is_read_from_its_beginning_each_time() -> None:
    log = Kmsg.open("/dev/kmsg")
    records = [parse(data) for data in log.read()]
    log.rewind()
    again = [parse(data) for data in log.read()]
    log.close()
    assert records
    assert None not in records
    assert again[: len(records)] == records
    stamps = [record.stamp_us for record in records if record]
    assert stamps[0] <= stamps[-1]
