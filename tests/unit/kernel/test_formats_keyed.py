"""Keyed files: every number that stands there whole, nothing that does not, and no memory of it.

The last is what matters most: a parser remembers layouts, so whatever it was given before, it must
say of a file what a parser says that never saw another one.
"""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule
from tests.unit.kernel.keyed_files import (
    ALL,
    FLAT,
    NESTED,
    Want,
    as_dict,
    damaged,
    each,
    files,
    flat,
    flat_truth,
    half,
    joined,
    nested,
    nested_truth,
    scraps,
    sequences,
)

from cgotel.kernel.formats import Columns, FlatKeyed, NestedKeyed, Single, single

words = st.binary(min_size=1, max_size=8).filter(lambda w: not any(byte in b" \t\n\r\x0b\x0c=" for byte in w))
numbers = st.integers(0, 2**63 - 1)


@given(st.dictionaries(words, numbers, max_size=12))
def test_what_is_printed_flat_comes_back_in_its_order(content: dict[bytes, int]) -> None:
    data = b"".join(b"%s %d\n" % line for line in content.items())
    for _ in range(2):
        columns = flat(learn=True).columns(data)
        assert [key for _, key in columns.wanted] == list(content)
        assert columns.values == list(content.values())


@given(st.dictionaries(words, st.dictionaries(words, numbers, max_size=5), max_size=5))
def test_what_is_printed_nested_comes_back_in_its_order(content: dict[bytes, dict[bytes, int]]) -> None:
    data = b"".join(
        outer + b"".join(b" %s=%d" % pair for pair in pairs.items()) + b" \n"
        for outer, pairs in content.items()
    )
    expected = {(outer, key): value for outer, pairs in content.items() for key, value in pairs.items()}
    columns = nested(learn=True).columns(data)
    assert dict(zip(*columns, strict=True)) == expected
    assert list(columns.wanted) == list(expected)


@given(files(FLAT), st.booleans())
@example(b"a\x0b5\nb\t6\nc 7\r\nd\n8\n", False)
def test_a_flat_file_gives_exactly_what_stands_in_it(data: bytes, decimals: bool) -> None:
    assert as_dict(flat(learn=False, decimals=decimals).columns(data)) == flat_truth(data, decimals)


@given(files(NESTED), st.booleans())
@example(b"8:0 8:16 rbytes=1\n", False)
@example(b"some avg10=0.05 total=1.5\n", False)
def test_a_nested_file_gives_exactly_what_stands_in_it(data: bytes, decimals: bool) -> None:
    assert as_dict(nested(learn=False, decimals=decimals).columns(data)) == nested_truth(data, decimals)


@pytest.mark.parametrize("data", FLAT + NESTED)
def test_a_file_cut_anywhere_gives_a_part_of_the_whole(data: bytes) -> None:
    for parser in (flat(learn=False), nested(learn=False)):
        whole = as_dict(parser.columns(data)).items()
        for end in range(len(data)):
            assert as_dict(parser.columns(data[:end])).items() <= whole


@settings(max_examples=400)
@given(sequences(FLAT), st.booleans(), st.sampled_from([ALL, half]))
@example([b"a 1\nb 2\n", b"a 1 b 2\n"], False, ALL)
@example([b"a 1\nb 2\n", b"a\n1\nb\n2\n"], False, ALL)
@example([b"a 1\nb 2\n", b"a 1\x0bb 2\n"], False, ALL)
@example([b"a 1\nb 2\n", b"1 a\n2 b\n"], False, ALL)
@example([b"a 1\nb max\n", b"a 1\nb 2\n", b"a 1\nb -2\n"], False, ALL)
@example([b"a 1\na 1\n", b"a 2\na 2\n"], False, ALL)
@example([b"a 1\nb 2\n", b"a 1\nb 9999999999999999999\n"], False, half)
@example([b"a 1\nb 2\n", b"a 1\nb 2\n\n", b"a 1\nb 2"], False, ALL)
@example([b"a 0.5\nb 2\n", b"a 5\nb 2\n", b"a 0.5\nb 0.2\n"], True, ALL)
def test_a_flat_parser_has_no_memory(sequence: list[bytes], decimals: bool, want: Want) -> None:
    veteran = flat(True, decimals, want)
    for data in sequence:
        assert repr(veteran.columns(data)) == repr(flat(False, decimals, want).columns(data))


@settings(max_examples=400)
@given(sequences(NESTED), st.booleans(), st.sampled_from([ALL, half]))
@example([b"s a=1 b=2\n", b"s a 1 b 2\n"], True, ALL)
@example([b"s a=1 b=2\n", b"s=a=1=b=2\n"], True, ALL)
@example([b"s a=1 b=2\n", b"s a=1\nb=2\n"], True, ALL)
@example([b"8:0 \n8:16 a=1\n", b"8:0 8:16 a=1\n", b"8:0 8:16\n a=1\n", b"8:0\n8:16 a=1\n"], True, ALL)
@example([b"s a=0.05 b=1\n", b"s a=5 b=1\n", b"s a=0.05 b=1.5\n"], True, ALL)
@example([b"s a=1 b=2\n", b"s a=1=1 b=2\n"], True, half)
@example([b"s a=max b=1\n", b"s a=1 b=1\n", b"s a= b=1\n"], True, ALL)
def test_a_nested_parser_has_no_memory(sequence: list[bytes], decimals: bool, want: Want) -> None:
    veteran = nested(True, decimals, want)
    for data in sequence:
        assert repr(veteran.columns(data)) == repr(nested(False, decimals, want).columns(data))


SINGLE = [b"42\n", b"max\n", b"0\n", b"9223372036854775808\n", b"42", b"4 2\n", b"007\n", b"-1\n", b"\n", b""]


@pytest.mark.parametrize("data", SINGLE)
def test_a_single_number_is_what_the_format_says(data: bytes) -> None:
    number = single(data)
    for learn in (1, 2**62):
        parser = Single("n")
        parser._MISSES_A_PATTERN = learn
        for _ in range(2):
            assert parser.columns(data) == (Columns((), []) if number is None else Columns(("n",), [number]))


def triples() -> st.SearchStrategy[tuple[bytes, bytes, bytes]]:
    return st.tuples(files(FLAT), files(NESTED), st.sampled_from(SINGLE) | scraps())


@settings(max_examples=400)
@given(
    st.lists(triples(), min_size=1, max_size=3)
    | st.tuples(triples(), sequences(FLAT)).map(lambda t: [(flat, *t[0][1:]) for flat in t[1]])
    | st.tuples(triples(), sequences(NESTED)).map(lambda t: [(t[0][0], nested, t[0][2]) for nested in t[1]]),
    st.sampled_from([ALL, half]),
)
@example([(b"a 1\n", b"s b=1\n", b"3\n"), (b"a 1\ns b=1\n", b"", b"3\n")], ALL)
@example([(b"a 1\n", b"s b=1\n", b"3\n"), (b"a 1", b"\ns b=1\n", b"3\n")], ALL)
@example([(b"a 1\n", b"s a=1 b=2\n", b"3\n"), (b"a 1\n", b"s a=\0 b=2\n", b"3\n")], half)
@example([(b"a 1\n", b"s a=1 b=2\n", b"3\n"), (b"a 1\n", b"s a=1=1 b=2\n", b"3\n")], half)
@example([(b"a 1\n", b"s b=1\n", b"3\n"), (b"a 007\n", b"s b=08\n", b"3\n")], ALL)
@example([(b"a 1\n", b"s b=0.5 c=1\n", b"max\n"), (b"a 1\n", b"s b=5 c=2\n", b"4\n")], ALL)
def test_files_as_one_text_give_what_each_gives_alone(
    sequence: list[tuple[bytes, bytes, bytes]], want: Want
) -> None:
    veteran = joined(True, want)
    for texts in sequence:
        alone = [parser.columns(text) for parser, text in zip(each(want), texts, strict=True)]
        together = veteran.columns(b"\0".join(texts))
        if any(b"\0" in text for text in texts):
            assert together == Columns((), [])
        else:
            points = [point for columns in alone for point in zip(*columns, strict=True)]
            assert repr(list(zip(*together, strict=True))) == repr(points)
        assert repr(together) == repr(joined(False, want).columns(b"\0".join(texts)))


def test_the_layout_of_files_as_one_text_is_remembered() -> None:
    parser = joined(learn=True, want=half)
    for number in (b"1", b"22", b"333"):
        texts = [text.replace(b"N", number) for text in (b"a N\nb N\n", b"s a=N b=N\nt d=N\n", b"N\n")]
        assert parser.columns(b"\0".join(texts)).values == [int(number)] * 4
    assert parser._misses == 1


class Veterans(RuleBasedStateMachine):
    """Parsers in use for a while, as they are, which want some of the keys only."""

    def __init__(self) -> None:
        super().__init__()
        self.flat = flat(learn=True, want=half)
        self.nested = nested(learn=True, want=half)
        self.flat._PATTERNS = self.nested._PATTERNS = 3

    @rule(data=damaged(FLAT) | damaged(NESTED) | scraps())
    def see(self, data: bytes) -> None:
        assert self.flat.columns(data) == flat(learn=False, want=half).columns(data)
        assert self.nested.columns(data) == nested(learn=False, want=half).columns(data)
        assert len(self.flat._layouts) <= 3
        assert len(self.nested._layouts) <= 3


TestVeterans = Veterans.TestCase
TestVeterans.settings = settings(max_examples=60, stateful_step_count=30)


def test_the_same_keys_give_the_same_tuple_object() -> None:
    parser = FlatKeyed(lambda key: key)
    first = parser.columns(b"a 1\nb 2\n").wanted
    seen = {id(parser.columns(b"a %d\nb %d\n" % (n, n + 1)).wanted) for n in range(100)}
    assert seen == {id(first)}
    assert parser.columns(b"b 2\na 1\n").wanted is not first


def test_a_layout_is_remembered_and_one_that_is_out_of_use_forgotten() -> None:
    parser = flat(learn=True)
    parser.columns(b"a 1\n")
    for n in range(100):
        parser.columns(b"key_%d 1\n" % n)
        parser.columns(b"a %d\n" % n)
    assert parser._misses == 101
    assert len(parser._layouts) == parser._PATTERNS
    parser.columns(b"key_0 7\n")
    assert parser._misses == 102


def test_memory_of_files_that_never_look_the_same_is_bounded() -> None:
    parser = FlatKeyed(lambda key: key)
    for n in range(5000):
        parser.columns(b"key_%d 1\n" % n)
    assert len(parser._layouts) <= parser._PATTERNS
    assert len(parser._known) <= 256


@pytest.mark.parametrize(
    "piece", [b"a", b"a ", b"a 1", b" ", b"=", b"a=", b"a=1", b"a=1 ", b"a a=1 ", b"a=1=", b"\r", b"9"]
)
@pytest.mark.parametrize("end", [b"", b"\n", b"=\n"])
def test_a_huge_line_takes_time_in_proportion_to_its_length(piece: bytes, end: bytes) -> None:
    """A pattern that tries again from every place in it would not end within the time limit of a test."""
    data = piece * 300_000 + end
    FlatKeyed(lambda key: key).columns(data)
    NestedKeyed(lambda outer, key: key).columns(data)


def test_a_huge_file_is_read_and_not_made_into_a_pattern() -> None:
    parser = flat(learn=True)
    data = b"".join(b"key_%d %d\n" % (n, n) for n in range(50_000))
    assert len(parser.columns(data).values) == 50_000
    assert parser._layouts == []
