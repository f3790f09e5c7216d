"""Which cgroups are walked into and which are reported."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cgotel.collectors.cgroup.selection import BadGlobError, Selection, compile_globs

names = st.text(st.characters(blacklist_characters="/\0", blacklist_categories=()), min_size=1, max_size=12)
paths = st.lists(names, min_size=1, max_size=4).map(lambda parts: "/" + "/".join(parts))


@pytest.mark.parametrize(
    ("glob", "matching", "others"),
    [
        ("/a.slice", ["/a.slice"], ["/a.slice/b", "/axslice", "/a", "/"]),
        ("/a.slice/*", ["/a.slice/b", "/a.slice/.b"], ["/a.slice", "/a.slice/b/c", "/b/b"]),
        ("/a/**", ["/a", "/a/b", "/a/b/c"], ["/", "/ab", "/b/a"]),
        ("/**/x", ["/x", "/a/x", "/a/b/x"], ["/ax", "/x/a", "/"]),
        ("/a/**/x", ["/a/x", "/a/b/x", "/a/b/c/x"], ["/a", "/x", "/ab/x"]),
        ("**/x", ["/x", "/a/x"], ["/x/y"]),
        ("/**", ["/", "/a", "/a/b"], []),
        ("**", ["/", "/a", "/a/b"], []),
        ("/*/b?.service", ["/a/bc.service"], ["/a/b.service", "/a/bcd.service", "/a/b/.service"]),
        ("/[ab]*", ["/a", "/bc"], ["/c", "/ca", "/a/b"]),
        ("/[!ab]", ["/c", "/!"], ["/a", "/b", "//"]),
        ("/[a-c]", ["/b"], ["/d", "/-"]),
        ("/[.]x", ["/.x"], ["/ax"]),
        ("/[^a]", ["/^", "/a"], ["/b"]),
        ("/[\\]", ["/\\"], ["/a"]),
        ("/[[&&||~~]", ["/[", "/&", "/|", "/~"], ["/a"]),
        ("/[a-c-]", ["/b", "/-"], ["/d"]),
        ("/a]", ["/a]"], ["/a"]),
        ("/a+(b)|{c}$", ["/a+(b)|{c}$"], ["/aab", "/c"]),
        ("/a/", ["/a"], ["/a/b"]),
        ("/", ["/"], ["/a", ""]),
        ("/new\nline*", ["/new\nline", "/new\nlines\n"], ["/new"]),
        ("/docker-\\x2d.scope", ["/docker-\\x2d.scope"], ["/docker--.scope"]),
    ],
)
def test_a_glob_matches_paths_segment_by_segment(glob: str, matching: list[str], others: list[str]) -> None:
    pattern = compile_globs([glob])
    assert pattern is not None
    assert [path for path in matching if pattern.fullmatch(path) is None] == []
    assert [path for path in others if pattern.fullmatch(path) is not None] == []


@pytest.mark.parametrize(
    "glob",
    ["", "a", "*", "*.service", "system.slice/x", "/[", "/[]", "/a[b", "/[*", "/[ab*", "/[b-a]", "/[!b-a]"],
)
def test_a_glob_that_cannot_be_meant_says_which_and_why(glob: str) -> None:
    with pytest.raises(BadGlobError, match=r"'.*' (must begin|cannot be read)"):
        compile_globs([glob])


def test_no_globs_are_no_pattern() -> None:
    assert compile_globs([]) is None


@given(st.lists(st.sampled_from("/*?[]!^-\\ab.()|+${}\n ") | names, max_size=10).map("".join))
def test_a_glob_is_understood_or_refused(glob: str) -> None:
    with contextlib.suppress(BadGlobError):
        compile_globs([f"/{glob}"])


@given(paths)
def test_a_path_without_special_characters_matches_itself_alone(path: str) -> None:
    plain = path.translate(dict.fromkeys(map(ord, "*?[]"), "_"))
    pattern = compile_globs([plain])
    assert pattern is not None
    assert (pattern.fullmatch(plain) is not None) == (pattern.fullmatch(f"{plain}x") is None)


def test_an_excluded_cgroup_hides_what_is_below_it() -> None:
    selection = Selection(exclude=["/user.slice", "/**/*.mount"])
    assert not selection.enters("/user.slice", 1)
    assert not selection.enters("/system.slice/boot.mount", 2)
    assert selection.enters("/system.slice", 1)


def test_depth_is_a_bound_of_the_walk() -> None:
    selection = Selection(max_depth=1)
    assert [selection.enters("/x", depth) for depth in (0, 1, 2)] == [True, True, False]
    assert not Selection(max_depth=0).enters("/x", 1)


def test_what_is_not_included_is_entered_and_not_reported() -> None:
    selection = Selection(include=["/a/**"], kinds=["service", "container"])
    assert selection.enters("/b", 1)
    assert not selection.reports("/b", "service")
    assert selection.reports("/a/b", "service")
    assert not selection.reports("/a/b", "slice")


def test_without_a_choice_every_cgroup_is_reported() -> None:
    assert Selection().enters("/any", 99)
    assert Selection().reports("/any", "slice")
