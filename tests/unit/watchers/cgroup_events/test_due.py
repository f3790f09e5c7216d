"""Members are looked at when their time has come, once, and not after their end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cgotel.kernel.cgroupfs import CgroupTree
from cgotel.kernel.files import Descriptors
from cgotel.watchers.cgroup_events.due import Due
from cgotel.watchers.cgroup_events.member import Member

MS = 10**6
SECOND = 10**9


@pytest.fixture
def member(tmp_path: Path) -> Iterator[Member]:
    tree = CgroupTree(str(tmp_path))
    (tmp_path / "cgroup.events").write_text("populated 1\nfrozen 0\n")
    yield Member(tree.root, Descriptors(8))
    tree.close()


def test_the_earliest_time_counts(member: Member) -> None:
    due = Due()
    for time in (30, 10, 20):
        due.add(member, time)
    assert due.next_ns == 10
    assert list(due.pop(9)) == []
    assert list(due.pop(10)) == [member]
    assert list(due.pop(99)) == []
    due.add(member, 5)
    assert list(due.pop(99)) == [member]


def test_one_that_is_gone_is_not_due(member: Member) -> None:
    due = Due()
    due.add(member, 10)
    member.release()
    assert list(due.pop(99)) == []
    assert due.next_ns is None


def test_notices_that_come_one_upon_the_other_are_read_ten_times_a_second(member: Member) -> None:
    now, looks = 0, []
    while now < 3 * SECOND:
        now = max(now + MS, member.next_look_ns(now))
        member.look(lambda text: {}, now)
        looks.append(now)
    assert 15 <= len([time for time in looks if time > SECOND]) <= 21
    assert looks[1] - looks[0] <= 10 * MS
    later = now + 2 * SECOND
    member.look(lambda text: {}, later)
    assert member.next_look_ns(later) == later
