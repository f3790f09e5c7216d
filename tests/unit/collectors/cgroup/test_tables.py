"""What metrics are called, by what a cgroup is."""

import pytest

from cgotel.collectors.cgroup import cpu, io, memory
from cgotel.collectors.cgroup.derived import Derived
from cgotel.collectors.cgroup.tables import Family

POD = "cpu.time cpu.usage memory.available memory.rss memory.usage memory.working_set paging.faults"
CONVENTIONS = {"container": f"{POD} disk.io", "k8s.pod": POD, "cgroup": ""}
"""The metrics that semantic conventions 1.44 have, per entity."""


@pytest.mark.parametrize("name", CONVENTIONS)
def test_a_metric_has_the_conventions_name_where_there_is_one(name: str) -> None:
    family = Family(name)
    Derived(family)
    for tables in (cpu.tables(family), memory.tables(family), io.tables(family, str)):
        assert tables
    inside = {full for full in family.instruments if not full.startswith("cgroup.")}
    assert inside == {f"{name}.{metric}" for metric in CONVENTIONS[name].split()}


def test_families_differ_in_names_alone() -> None:
    cgroups, containers = Family("cgroup"), Family("container")
    for family in (cgroups, containers):
        Derived(family), cpu.tables(family), memory.tables(family), io.tables(family, str)
    for ours, theirs in zip(cgroups.instruments.values(), containers.instruments.values(), strict=True):
        assert (ours.kind, ours.unit, ours.number, ours.description) == (
            theirs.kind, theirs.unit, theirs.number, theirs.description
        )  # fmt: skip


def test_a_name_is_made_once() -> None:
    family = Family("container")
    assert family.counter("paging.faults", "{fault}", "Page faults") is family.counter(
        "paging.faults", "{fault}", "Page faults"
    )
