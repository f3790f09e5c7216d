"""The table at every width: the least needed columns go first, and no line is too wide."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cgotel.outputs.screen import plain
from cgotel.outputs.summary import Bound, Row, Stall
from cgotel.outputs.table import table
from cgotel.outputs.text import columns

GIB = 2**30
POD = "/kubepods.slice/kubepods-pod8f0e7c52_41d3_4b1a_9a6f_2c2b6f6e1d11.slice"

FULL = Row(
    name="3f4e5d6c7b8a",
    kind="container",
    path="/docker/3f4e5d6c7b8a",
    cpu=0.5,
    cpu_limit=Bound(0.5, "self"),
    throttled=Bound(0.83, POD),
    stalled={"cpu": Stall(0.71), "memory": Stall(0.12), "io": Stall(0.031)},
    memory=1.93 * GIB,
    memory_limit=Bound(2 * GIB, "self", high=True),
    memory_left=Bound(0.07 * GIB, POD),
    pids_left=Bound(5, "self"),
)
EMPTY = Row("ssh.service", "service", "/ssh.service", stalled=dict.fromkeys(("cpu", "memory", "io"), Stall()))
LONG = Row("x" * 300, "cgroup", "/" + "x" * 300, stalled=dict.fromkeys(("cpu", "memory", "io"), Stall()))


def lines_of(*rows, width=None, totals=False, names=None, paint=plain):
    return table(rows, names or {}, totals, width, paint)


def words(line):
    return " ".join(line.split())


def titles(width):
    return words(lines_of(FULL, EMPTY, width=width)[1])


def test_everything_where_there_is_room():
    groups, heads, first, second = lines_of(FULL, EMPTY, names={POD: "pod 8f0e"})
    assert words(groups) == "stalled, % throttled, % cpus memory pids"
    assert words(heads) == "cgroup kind cpu mem io share by used limit by used limit by left of left of"
    assert words(first) == (
        "3f4e5d6c7b8a container 71 12 3.1 83 pod 8f0e 0.50 0.50 self 1.93G 2.00G self high "
        "71.7M pod 8f0e 5 self"
    )
    assert words(second) == "ssh.service service - - - - - - - - - - - -"


@given(st.integers(1, 400))
def test_no_line_is_wider_than_the_terminal(width):
    assert max(map(columns, lines_of(FULL, EMPTY, LONG, width=width))) <= max(width, 16)


def test_the_lightest_columns_go_first():
    assert " kind " in titles(200)
    assert titles(100) == "cgroup cpu mem io share used used limit by left left"
    assert titles(60) == "cgroup cpu mem io share used used"
    assert titles(20) == "cgroup"


def test_narrow_groups_have_short_titles():
    groups = lines_of(FULL, width=60)[0]
    assert words(groups) == "stalled, % thr % cpus mem"


def test_columns_stay_in_line_under_wide_characters():
    wide = Row("日本語.service", "service", "/x", cpu=1.0, stalled=EMPTY.stalled)
    _, _, first, second = lines_of(wide, EMPTY)
    assert columns(first[: first.rindex("service")]) == columns(second[: second.rindex("service")])


def test_a_hostile_name_is_one_line_of_printable_text():
    hostile = Row("a\x1b[2J\nb\u202e", "cgroup", "/x", throttled=Bound(1, "c\nd"), stalled=EMPTY.stalled)
    for line in lines_of(hostile):
        assert line.isprintable()


def test_of_totals_there_are_seconds_and_no_shares():
    row = Row("a", "cgroup", "/a", cpu=725.0, stalled={**EMPTY.stalled, "io": Stall(2.4)})
    groups, heads, cells = lines_of(row, totals=True)
    assert "%" not in groups
    assert "time" in heads
    assert "12m05s" in cells
    assert "2.4s" in cells


def test_pids_have_columns_only_where_they_are_near():
    assert "pids" not in lines_of(EMPTY)[0]


@pytest.mark.parametrize(
    ("row", "text", "tone"),
    [
        (FULL, "71", "bad"),
        (FULL, "12", "warn"),
        (FULL, "71.7M", "bad"),
        (FULL, "5", "warn"),
        (EMPTY, "-", "dim"),
    ],
)
def test_tones(row, text, tone):
    painted = []

    def paint(cell, tone):
        painted.append((cell.strip(), tone))
        return cell

    lines_of(row, paint=paint)
    assert (text, tone) in painted


def test_nothing_throttled_is_by_nobody():
    row = Row("a", "cgroup", "/a", throttled=Bound(0.0, "self"), stalled=EMPTY.stalled)
    assert "self" not in lines_of(row)[2]
