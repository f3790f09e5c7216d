"""memory.*: every key that Linux prints, and what it is called."""

import pytest
from tests.unit.collectors.cgroup.tables_shown import CGROUP, expected, keys, shown, sources

from cgotel.collectors.cgroup import memory

TABLES = memory.tables(CGROUP)

ROWS = expected("memory")

LIMITS = [
    "memory.max",
    "memory.high",
    "memory.low",
    "memory.min",
    "memory.swap.max",
    "memory.swap.high",
    "memory.zswap.max",
]


def test_every_row() -> None:
    assert shown(TABLES) == ROWS


def test_every_key_is_reported() -> None:
    files = ["memory.stat", "memory.events", "memory.events.local", "memory.swap.events"]
    assert keys(files) <= sources(TABLES)


@pytest.mark.parametrize("file", LIMITS)
@pytest.mark.parametrize("content", ["max\n", "", "max", "10485", "-1\n", "9223372036854775808\n"])
def test_max_and_what_is_cut_or_out_of_range_is_no_row(file: str, content: str) -> None:
    assert shown(TABLES, {file: content}) == ""


def test_an_older_kernels_keys_in_another_order_are_rows_all_the_same() -> None:
    old = "file 2\nanon 1\nkernel_stack 3\nan_old_key 4\n"
    assert sorted(shown(TABLES, {"memory.stat": old}).splitlines()) == [
        "memory.stat.anon = cgroup.memory.type.usage{cgroup.memory.type=anon} 1 By updowncounter",
        "memory.stat.file = cgroup.memory.type.usage{cgroup.memory.type=file} 2 By updowncounter",
        "memory.stat.kernel_stack = cgroup.memory.kernel_stack 3 By updowncounter",
    ]


@pytest.mark.parametrize(
    "node", ["N", "N-1", "n0", "M0", "N0x", "N²", "N٣", "N" + "9" * 5000, "N 0", "\udcff"]
)
def test_a_numa_node_that_is_none_is_no_row(node: str) -> None:
    content = f"anon {node}=1\n".encode(errors="surrogateescape")
    [table] = [table for table in TABLES if table.file == "memory.numa_stat"]
    assert table.parse(content).values == []


def test_only_numa_nodes_are_read_on_the_slow_beat() -> None:
    assert [table.file for table in TABLES if table.slow] == ["memory.numa_stat"]
