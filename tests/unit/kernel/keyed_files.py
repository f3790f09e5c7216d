"""Keyed files for the tests: what kernels print, what they never would, and what each must give.

`flat_truth` and `nested_truth` are the formats said once more, in the plainest way.
"""

import re
from collections.abc import Callable

from hypothesis import strategies as st

from cgotel.kernel.formats import Columns, FlatKeyed, Joined, Keyed, NestedKeyed, Single

Want = Callable[[bytes], bool]
Numbers = dict[tuple[bytes, bytes], int | float]

ALL = bool
"""Every key is wanted."""

FLAT = [
    b"usage_usec 27381\nuser_usec 11000\nsystem_usec 16381\n",
    b"usage_usec 27381\nuser_usec 11000\nsystem_usec 16381\nnr_periods 12\nthrottled_usec 380113\n",
    b"low 0\nhigh 12\nmax 3\noom 1\noom_kill 1\noom_group_kill 0\n",
    b"populated 1\nfrozen 0\n",
    b"res_a 3\nres_b max\n",
    b"res_a.max 3\n",
    b"drm/0000:03:00.0/vram0 8650752\ndrm/0000:03:00.0/stolen max\n",
    b"nr_periods -7\nnr_throttled -2147483648\n",
    b"anon %d\nfile %d\nsock %d\n" % (2**63 - 1, 2**63, 2**64),
    b"anon " + b"9" * 5000 + b"\n",
    b"",
]

NESTED = [
    b"some avg10=0.05 avg60=1.02 avg300=0.46 total=1912493\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
    b"some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
    b"8:16 rbytes=1459200 wbytes=314773504 rios=192 wios=353 dbytes=0 dios=0\n8:0 rbytes=1 wbytes=2\n",
    b"8:0 \n8:16 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=5 dios=6\n",
    b"8:0 8:16 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=5 dios=6\n",
    b"8:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=0 dios=0\n252:0 ",
    b"8:0 rbytes=4096 wbytes=0 rios=1 wios=0 dbytes=0 dios=0 cost.vrate=100.00 cost.usage=12 cost.wait=0\n",
    b"8:0  use_delay=0 delay_nsec=0 depth=max avg_lat=12 win=100\n",
    b"8:16 rbps=2097152 wbps=max riops=max wiops=120\n",
    b"mlx4_0 hca_handle=2 hca_object=2000 \nocrdma1 hca_handle=3 hca_object=max \n",
    b"anon N0=1024000 N1=0\nfile N0=503808 N1=4096\nunevictable N0=0 N1=0\n",
    b"total=0 N0=0 N1=0\n",
    b"8:0 rbytes=-1 wbytes=%d\n" % 2**64,
    b"",
]

_WORDS = [
    b"a",
    b"b",
    b"anon",
    b"some",
    b"8:0",
    b"N0",
    b"avg10",
    b"total",
    b"max",
    b"0",
    b"1",
    b"22",
    b"0.05",
    b"-3",
]
_BETWEEN = [
    b" ",
    b"  ",
    b"=",
    b"\n",
    b"\r\n",
    b"\t",
    b"\x0b",
    b"\x0c",
    b"\x1c",
    b"\x85",
    b"\x00",
    b"\xff",
    b"\xc2\xa0",
]
_SCRAPS = [*_WORDS, b"9" * 18, b"9" * 19, *_BETWEEN, b" ", b" ", b"=", b"=", b"\n", b"\n"]
_PIECES = re.compile(rb"[^\s=]+|.", re.DOTALL)


def scraps() -> st.SearchStrategy[bytes]:
    """Anything that can be made of what stands in such files, and a little of what does not."""
    return st.lists(st.sampled_from(_SCRAPS), max_size=14).map(b"".join)


@st.composite
def damaged(draw: st.DrawFn, models: list[bytes]) -> bytes:
    """A kernel's file with up to three pieces replaced, left out, moved or said twice."""
    pieces = _PIECES.findall(draw(st.sampled_from(models)))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(pieces)))
        other = draw(st.integers(0, len(pieces)))
        scrap = draw(st.sampled_from(_SCRAPS + pieces[other : other + 1]))
        pieces[at : at + draw(st.integers(0, 2))] = draw(st.sampled_from([[], [scrap], [scrap, scrap]]))
    return b"".join(pieces)


def sequences(models: list[bytes]) -> st.SearchStrategy[list[bytes]]:
    """Files one after another that look much alike, among others."""
    alike = st.sampled_from(models).flatmap(lambda model: st.lists(damaged([model]), min_size=2, max_size=8))
    return alike | alike | st.lists(files(models), min_size=2, max_size=8)


def files(models: list[bytes]) -> st.SearchStrategy[bytes]:
    """Whole files, files cut anywhere, damaged ones, and garbage."""
    whole = st.sampled_from(models)
    cut = whole.flatmap(lambda data: st.integers(0, len(data)).map(lambda end: data[:end]))
    return whole | cut | damaged(models) | damaged(models) | scraps() | st.binary(max_size=40)


def half(key: bytes) -> bool:
    """Some keys are wanted, some are not, and there are some of each kind."""
    return sum(key) % 2 == 0


def flat(learn: bool, decimals: bool = False, want: Want = bool) -> FlatKeyed[tuple[bytes, bytes]]:
    """A parser of flat files that remembers every layout at first sight, or none at all."""
    parser = FlatKeyed(lambda key: (b"", key) if want(key) else None, decimals)
    parser._MISSES_A_PATTERN = 1 if learn else 2**62
    return parser


def nested(learn: bool, decimals: bool = True, want: Want = bool) -> NestedKeyed[tuple[bytes, bytes]]:
    """The same for nested files."""
    parser = NestedKeyed(lambda outer, key: (outer, key) if want(key) else None, decimals)
    parser._MISSES_A_PATTERN = 1 if learn else 2**62
    return parser


def each(want: Want = ALL) -> list[Keyed[tuple[bytes, bytes]]]:
    """A parser of each kind, that remembers no layout."""
    return [flat(learn=False, want=want), nested(learn=False, want=want), Single((b"", b"only"))]


def joined(learn: bool, want: Want = ALL) -> Joined[tuple[bytes, bytes]]:
    """A parser of one file of each kind as one text."""
    parser = Joined(each(want))
    parser._MISSES_A_PATTERN = 1 if learn else 2**62
    return parser


def as_dict(columns: Columns[tuple[bytes, bytes]]) -> Numbers:
    """What a file gave, checked to give nothing twice."""
    assert len(set(columns.wanted)) == len(columns.wanted) == len(columns.values)
    return dict(zip(*columns, strict=True))


def flat_truth(data: bytes, decimals: bool = False) -> Numbers:
    """What stands in a flat file, whole, under a key that stands there once."""
    said = []
    for line in data.split(b"\n")[:-1]:
        key, _, value = line.partition(b" ")
        if _is_word(key) and _is_word(value.strip(b" ")):
            said.append(((b"", key), value.strip(b" ")))
    return _readable(said, decimals)


def nested_truth(data: bytes, decimals: bool = True) -> Numbers:
    """What stands in a nested file, whole, under a key that stands there once."""
    said = []
    for line in data.split(b"\n")[:-1]:
        first, *rest = line.split(b" ")
        said += _pairs_of_line([first, *filter(None, rest)])
    return _readable(said, decimals)


def _pairs_of_line(words: list[bytes]) -> list[tuple[tuple[bytes, bytes], bytes]]:
    outer = [word for word in words if b"=" not in word]
    pairs = [word.split(b"=") for word in words[len(outer) :]]
    regular = outer == words[: len(outer)] and all(len(pair) == 2 for pair in pairs)
    if not outer or not regular or not all(_is_word(w) for w in [*outer, *(w for p in pairs for w in p)]):
        return []
    return [((outer[-1], key), value) for key, value in pairs]


def _is_word(token: bytes) -> bool:
    return token != b"" and not any(byte in b" \t\n\r\x0b\x0c" for byte in token)


def _readable(said: list[tuple[tuple[bytes, bytes], bytes]], decimals: bool) -> Numbers:
    keys = [key for key, _ in said]
    numbers = {key: _number(value, decimals) for key, value in said if keys.count(key) == 1}
    return {key: value for key, value in numbers.items() if value is not None}


def _number(token: bytes, decimals: bool) -> int | float | None:
    if re.fullmatch(rb"[0-9]{1,19}", token):
        return int(token) if int(token) < 2**63 else None
    return float(token) if decimals and re.fullmatch(rb"[0-9]{1,15}\.[0-9]{1,6}", token) else None
