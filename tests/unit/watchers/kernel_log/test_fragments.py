"""Lines in pieces: whole ones come out at once, open ones wait for their end, and not for ever."""

from tests.unit.watchers.kernel_log.told import record

from cgotel.kernel.kmsg import Record
from cgotel.watchers.kernel_log.fragments import Fragments

FORK = "cgroup: fork rejected by pids controller in "


def fed(*pieces: str) -> list[bytes]:
    fragments = Fragments()
    return [whole.text for piece in pieces for whole in fragments.feed(piece_of(piece))]


def piece_of(text: str) -> Record:
    return record(text.removeprefix("+"), continued=text.startswith("+"))


def test_a_line_that_comes_whole_is_not_held() -> None:
    assert fed("hello", FORK + "/a", "usb 1") == [b"hello", FORK.encode() + b"/a", b"usb 1"]


def test_others_pass_while_a_line_is_open() -> None:
    assert fed(FORK, "usb 1", "+/a", "usb 2") == [b"usb 1", FORK.encode() + b"/a", b"usb 2"]


def test_an_open_line_gives_way_to_the_next_of_its_sort() -> None:
    assert fed(FORK, FORK + "/b", "+/a") == [FORK.encode(), FORK.encode() + b"/b"]


def test_an_open_line_is_given_up_after_many_others() -> None:
    fragments = Fragments()
    found = list(fragments.feed(piece_of(FORK)))
    assert fragments
    for _ in range(300):
        found += fragments.feed(piece_of("usb"))
    assert not fragments
    assert FORK.encode() in [one.text for one in found]


def test_no_line_grows_for_ever() -> None:
    fragments = Fragments()
    found = list(fragments.feed(piece_of("oom-kill:")))
    for _ in range(100):
        found += fragments.feed(piece_of("+" + "x" * 1000))
    held = list(fragments.flush())
    assert all(len(one.text) < 70_000 for one in found + held)
