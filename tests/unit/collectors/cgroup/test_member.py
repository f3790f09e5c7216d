"""One cgroup between two sweeps."""

import os

import pytest
from tests.unit.collectors.cgroup.kernel_files import LEAF
from tests.unit.collectors.cgroup.tables_shown import CGROUP
from tests.unit.kernel.real import no_descriptor_left, open_descriptors

from cgotel.collectors.cgroup import cpu, memory, others
from cgotel.collectors.cgroup.limits import Own
from cgotel.collectors.cgroup.member import Member, ProcessSet, Tables
from cgotel.kernel.cgroupfs import CgroupDirectory
from cgotel.kernel.files import Descriptors
from cgotel.kernel.source import State
from cgotel.model import Entity
from cgotel.testing import tree

TABLES = Tables([*cpu.tables(CGROUP), *memory.tables(CGROUP), *others.tables(CGROUP, [])])


@pytest.fixture
def member_of():
    """A member made of a directory, below a parent or as the root of the tree."""
    opened = []

    def make(path, descriptors: Descriptors, root: bool = False) -> Member:
        parent = None if root else CgroupDirectory("/", os.open(path.parent, os.O_RDONLY), None)
        directory = CgroupDirectory("/x", os.open(path, os.O_RDONLY), parent)
        opened.extend(d.fd for d in (parent, directory) if d is not None)
        return Member(directory, Entity("cgroup", "/x"), True, TABLES, descriptors)

    yield make
    for fd in opened:
        os.close(fd)


def test_its_own_limits_and_use_are_what_its_files_say(tmp_path, member_of) -> None:
    member = member_of(tree(LEAF, into=tmp_path), Descriptors(99))
    assert member.own == Own()
    member.read(slow_beat=False)
    assert member.own == Own(104857600, 268435456, 209715200, 8192, 1.5, 4, 7, 64)
    member.close()


def test_what_is_not_there_is_no_limit(tmp_path, member_of) -> None:
    member = member_of(
        tree({"cpu.max": "max 100000\n", "memory.max": "max\n"}, into=tmp_path), Descriptors(99)
    )
    assert len(member.read(slow_beat=True)) == 1
    assert member.own == Own()
    member.close()


@pytest.mark.parametrize(
    ("root", "costly"), [(False, {"memory.numa_stat"}), (True, {"memory.numa_stat", "memory.stat"})]
)
def test_costly_files_are_read_on_the_slow_beat_and_their_numbers_kept_until_the_next(
    tmp_path, member_of, root: bool, costly: set[str]
) -> None:
    member = member_of(tree(LEAF, into=tmp_path), Descriptors(99), root)
    assert {file.name for file in member.slow} == costly
    first = member.read(slow_beat=False)
    fast = member.series
    second = member.read(slow_beat=True)
    assert len(second) > len(first)
    (tmp_path / "memory.numa_stat").write_text("anon N0=77\n")
    assert member.read(slow_beat=False) == second
    assert 77 in member.read(slow_beat=True)
    assert {series.source for series in fast}.isdisjoint(
        series.source for file in member.slow for series in file.last.wanted
    )
    member.close()


def test_the_series_are_the_same_tuple_until_the_set_of_points_changes(tmp_path, member_of) -> None:
    member = member_of(tree(LEAF, into=tmp_path), Descriptors(99))
    member.read(slow_beat=True)
    before = member.series
    (tmp_path / "memory.current").write_text("5\n")
    assert len(member.read(slow_beat=True)) == len(before)
    assert member.series is before
    (tmp_path / "memory.max").write_text("max\n")
    values = member.read(slow_beat=True)
    assert len(values) == len(member.series) == len(before) - 1
    assert [series for series in before if series not in member.series] == [
        series for series in before if series.source == "memory.max"
    ]
    member.close()


def test_a_file_that_was_silent_is_asked_again_at_a_retry_the_processes_too(tmp_path, member_of) -> None:
    member = member_of(tmp_path, Descriptors(99))
    assert member.read(slow_beat=True) == []
    assert member.procs.read() is None
    tree(LEAF, into=tmp_path)
    assert member.read(slow_beat=True) == []
    member.retry()
    assert len(member.read(slow_beat=True)) > 100
    assert member.procs.read().count == 3
    member.close()


def test_without_a_listing_every_file_is_asked(tmp_path, member_of) -> None:
    member = member_of(tree(LEAF, into=tmp_path), Descriptors(99))
    with no_descriptor_left():
        member.retry()
    assert len(member.read(slow_beat=True)) > 100
    member.close()


def test_every_descriptor_is_given_back(tmp_path, member_of) -> None:
    descriptors = Descriptors(99)
    member = member_of(tree(LEAF, into=tmp_path), descriptors)
    before = open_descriptors()
    member.read(slow_beat=True)
    member.procs.read()
    assert descriptors.free < 99
    member.close()
    member.close()
    assert descriptors.free == 99
    assert open_descriptors() == before


def test_it_is_gone_when_the_kernel_says_so(cgroup, member_of) -> None:
    (cgroup / "x").mkdir()
    member = member_of(cgroup / "x", Descriptors(99))
    assert member.read(slow_beat=True) != []
    assert not member.gone
    (cgroup / "x").rmdir()
    assert member.read(slow_beat=True) == []
    assert member.gone
    assert {file.state for file in member.sources} <= {State.GONE, State.ABSENT, State.OK}
    member.close()


def test_a_process_set_counts_only_what_it_saw() -> None:
    processes = ProcessSet()
    assert (processes.starts, processes.exits) == (0, 0)
    for now, starts, exits in [
        ({1, 2}, 2, 0),
        ({1, 2}, 2, 0),
        ({2, 3}, 3, 1),
        ({2, 4, 5}, 5, 2),
        (set(), 5, 5),
        ({9}, 6, 5),
    ]:
        processes.update(frozenset(now))
        assert (processes.starts, processes.exits) == (starts, exits)
