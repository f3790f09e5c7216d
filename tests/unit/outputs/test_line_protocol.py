"""The signs of line protocol: what is escaped, what stands as its escape, what is left out."""

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.outputs.parsed_lines import parsed

from cgotel.outputs import line_protocol as influx


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("plain", "plain"),
        ("a b", r"a\ b"),
        ("a,b=c", r"a\,b\=c"),
        (r"dev-\x2dname", r"dev-\x2dname"),  # a backslash that escapes nothing stands for itself
        ("a\\", r"a\x5c"),
        ("a\\ b", r"a\x5c\ b"),
        ("a\\,b", r"a\x5c\,b"),
        ("a\\\\", r"a\\x5c"),
        ('"', '"'),
        ("a\nb", r"a\nb"),
        ("a\x00\x1b\u2028", r"a\x00\x1b\u2028"),
        ("\udcff", r"\udcff"),
        ("日本", "日本"),
        ("", ""),
    ],
)
def test_tags_and_keys(text, written):
    assert influx.key(text) == written


def test_a_measurement_may_hold_an_equal_sign():
    assert influx.measurement("a=b, c") == r"a=b\,\ c"


@pytest.mark.parametrize(
    ("text", "written"),
    [("a", '"a"'), ('say "x"', r'"say \"x\""'), ("a\\", r'"a\\"'), ("a\nb", r'"a\\nb"'), ("", '""')],
)
def test_texts(text, written):
    assert influx.quoted(text) == written


@pytest.mark.parametrize(
    ("value", "integer", "written"),
    [
        (0, True, "0i"),
        (-1, True, "-1i"),
        (2**63 - 1, True, f"{2**63 - 1}i"),
        (-(2**63), True, f"-{2**63}i"),
        (2**63, True, f"{2**63}u"),
        (2**64 - 1, True, f"{2**64 - 1}u"),
        (2**64, True, None),
        (-(2**63) - 1, True, None),
        (1.0, True, "1i"),
        (1, False, "1.0"),
        (0.25, False, "0.25"),
        (math.nan, False, None),
        (math.inf, True, None),
        ("1", True, None),
        (None, False, None),
    ],
)
def test_numbers(value, integer, written):
    assert influx.number(value, integer) == written


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (True, "true"),
        (7, "7i"),
        (0.5, "0.5"),
        (math.nan, None),
        ("x", '"x"'),
        (("a", "b"), r'"[\"a\",\"b\"]"'),
    ],
)
def test_attributes_as_fields(value, written):
    assert influx.field(value) == written


def test_an_empty_tag_is_left_out():
    assert influx.tags([("a", ""), ("b", 3), ("c", True)]) == ",b=3,c=true"


def test_what_is_too_long_is_cut_and_stays_apart_from_its_like():
    written = [influx.key("x" * 5000 + end) for end in "ab"]
    assert all(len(text) <= influx.LONGEST_NAME for text in written)
    assert written[0] != written[1]
    assert influx.key("é" * 1024) == "é" * 1024


def test_tags_together_are_never_too_long():
    written = influx.tags([(f"tag{number}", "x, =" * 1000) for number in range(100)])
    assert written.startswith(",tag0=")
    assert len(written) < influx.LONGEST_LINE // 4


@given(st.text(), st.text(), st.text(min_size=1))
def test_whatever_it_holds_a_line_reads_as_it_was_meant(measurement, tag, text):
    line = f"m{influx.measurement(measurement)}{influx.tags([('t', tag), ('u', 'x')])} "
    line += f"{influx.key(text)}=1i,f={influx.quoted(text)} 7\n"
    [read] = parsed(line)
    assert list(read.tags) == (["t", "u"] if tag else ["u"])
    assert read.tags["u"] == "x"
    assert len(read.fields) == (1 if text == "f" else 2)
    assert read.time_ns == 7
    if not re.search(r"[\\\x00-\x1f\x7f\x85\u2028\u2029]", tag + text + measurement):
        assert read.measurement == f"m{measurement}"
        assert read.tags.get("t", "") == tag
        assert read.fields["f"] == text
