"""Text that fits a terminal: what a name holds never moves the cursor, and columns stay in line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cgotel.outputs.text import clip, columns, encodable, left, right, shorten, visible


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("nginx.service", "nginx.service"),
        ("a\x1b[31mb", r"a\x1b[31mb"),
        ("a\nb\tc\r", r"a\nb\tc\r"),
        ("a\x9bb", r"a\x9bb"),  # CSI in one byte
        ("a\u202eb", r"a\u202eb"),  # right-to-left override
        ("a\u2028b", r"a\u2028b"),
        ("café 日本", "café 日本"),
        (r"dev-\x2d", r"dev-\x2d"),
    ],
)
def test_what_cannot_be_printed_is_shown_as_its_escape(name, shown):
    assert visible(name) == shown


@given(st.text())
def test_whatever_a_name_holds_what_is_shown_can_be_printed(name):
    assert visible(name).isprintable()


@pytest.mark.parametrize(("text", "width"), [("abc", 3), ("日本", 4), ("é", 1), ("e\u0301", 1), ("", 0)])
def test_columns_of_a_terminal(text, width):
    assert columns(text) == width


@given(st.text(), st.integers(0, 40))
def test_a_shortened_text_fits(text, width):
    assert columns(shorten(text, width)) <= width
    assert columns(clip(text, width)) <= width


def test_a_long_name_is_cut_in_the_middle_and_keeps_more_of_its_end():
    assert shorten("kubepods-burstable-pod1234.slice", 16) == "kubep…1234.slice"


def test_a_name_that_fits_is_left_alone():
    assert shorten("nginx.service", 13) == "nginx.service"


def test_half_of_a_wide_character_is_not_shown():
    assert shorten("日本語の名前です", 8) == "日…です"


def test_padding_counts_columns():
    assert left("日本", 6) + "|" == "日本  |"
    assert right("日本", 6) + "|" == "  日本|"


@pytest.mark.parametrize(
    ("encoding", "shown"), [("utf-8", "日… · é"), ("ascii", r"\u65e5~ - \xe9"), ("latin-1", r"\u65e5~ - é")]
)
def test_what_an_encoding_lacks_has_a_stand_in(encoding, shown):
    assert encodable("日… · é", encoding) == shown
