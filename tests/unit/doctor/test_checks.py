"""Each check over facts of its own: no host is needed to lack something."""

from dataclasses import replace

import pytest

from cgotel.contract import SourceStatus, State
from cgotel.doctor import (
    Facts,
    Finding,
    Level,
    controllers,
    descriptors,
    examine,
    hierarchy,
    namespace,
    permissions,
    plugins,
    pressure,
    sources,
    swap,
    witnesses,
)
from cgotel.doctor.facts import CONTROLLERS, Cgroup, Descriptors, Hierarchy
from cgotel.kernel.procfs import Swap
from cgotel.kernel.roots import Roots

ALL = frozenset(CONTROLLERS)
GOOD = Facts(
    roots=Roots(),
    kernel="6.12.0",
    cgroups=(Cgroup("/", ALL, ALL, has_children=True), Cgroup("/a", ALL)),
    swaps={"/swap": Swap(2**30, 0)},
)


def facts(**changes):
    return replace(GOOD, **changes)


def root(*names, passed_on=None):
    return Cgroup("/", frozenset(names), frozenset(names if passed_on is None else passed_on), True)


def levels(check, facts):
    return [finding.level for finding in check.check(facts)]


def only(check, facts, level=None) -> Finding:
    [finding] = [f for f in check.check(facts) if level is None or f.level is level]
    return finding


def test_where_everything_is_well_nothing_but_the_kernel_is_worth_a_note():
    found = examine(GOOD)
    assert {finding.level for finding in found} == {Level.NOTE, Level.OK}
    assert [f.check for f in found if f.level is Level.NOTE] == ["kernel"]


def test_what_matters_most_comes_first():
    found = examine(facts(swaps={}, faults={"x": "broken"}, pressure=State.ABSENT))
    order = [list(Level).index(finding.level) for finding in found]
    assert order == sorted(order)
    assert found[0].level is Level.LOST


class TestHierarchy:
    def test_hybrid(self):
        found = only(
            hierarchy,
            facts(cgroups=(root("hugetlb"),), hierarchy=Hierarchy(v1=frozenset({"memory", "io", "freezer"}))),
        )
        assert found.level is Level.LOST
        assert found.text.startswith("hybrid mount: memory, io are on cgroup v1; cgroup v2 at /sys/fs/cgroup")

    def test_a_v1_hierarchy_of_what_v2_has_as_well_is_no_loss(self):
        assert only(hierarchy, facts(hierarchy=Hierarchy(v1=frozenset({"net_cls"})))).level is Level.OK

    def test_none(self):
        assert only(hierarchy, facts(roots=Roots(cgroup=None))).level is Level.LOST


class TestControllers:
    def test_disabled_at_boot(self):
        off = facts(cgroups=(root("io", "cpu", "pids"),), hierarchy=Hierarchy(disabled=frozenset({"memory"})))
        found = only(controllers, off, Level.LOST)
        assert found.text == "memory is disabled at boot"
        assert "cgroup_disable=memory" in found.remedy

    def test_not_given_to_a_container(self):
        found = only(controllers, facts(cgroups=(root("cpu"),), namespaced=True), Level.LOST)
        assert found.text == "memory, io, pids: not passed on to this container"

    def test_not_in_the_kernel(self):
        found = only(controllers, facts(cgroups=(root("cpu", "pids"),)), Level.LOST)
        assert found.text == "memory, io: not available to cgroup v2"

    def test_the_small_ones_are_a_note(self):
        assert levels(controllers, facts(cgroups=(root("memory", "io", "cpu", "pids"),))) == [
            Level.NOTE,
            Level.OK,
        ]

    def test_what_is_on_v1_is_told_by_the_hierarchy_alone(self):
        v1 = Hierarchy(v1=ALL)
        assert levels(controllers, facts(cgroups=(root(),), hierarchy=v1)) == []

    def test_withheld_by_a_parent(self):
        tree = (
            root(*ALL),
            Cgroup("/a", ALL, ALL - {"memory"}, True),
            Cgroup("/a/b", ALL - {"memory"}, ALL, True),
        )
        found = only(controllers, facts(cgroups=tree), Level.LOST)
        assert found.affected == ("/a",)  # what lies below lacks it for that reason
        assert "DefaultMemoryAccounting=yes" in found.remedy

    def test_inside_a_unit_it_is_a_note_for_the_unit_is_measured(self):
        tree = (root(*ALL), Cgroup("/system.slice/udevd.service", ALL, ALL - {"memory"}, True))
        found = only(controllers, facts(cgroups=tree), Level.NOTE)
        assert found.text == "memory is not enabled inside one cgroup, measured as a whole each"
        assert found.affected == ("/system.slice/udevd.service",)

    def test_a_leaf_withholds_nothing(self):
        assert levels(controllers, GOOD) == [Level.OK]


class TestPressure:
    @pytest.mark.parametrize(
        ("changes", "remedy"),
        [
            ({"pressure": State.ABSENT, "cmdline": ("psi=0",)}, "take psi=0 off the kernel command line"),
            ({"pressure": State.OFF}, "boot with psi=1 (CONFIG_PSI, Linux 4.20)"),
            ({"pressure": State.DENIED}, "run as root, or unmask /proc/pressure"),
            ({"cgroups": (root(*ALL), Cgroup("/a", pressure=False))}, "write 1 to cgroup.pressure there"),
        ],
    )
    def test_lost(self, changes, remedy):
        found = only(pressure, facts(**changes))
        assert (found.level, found.remedy) == (Level.LOST, remedy)

    def test_a_kernel_without_the_switch_is_not_switched_off(self):
        assert levels(pressure, facts(cgroups=(Cgroup("/a", pressure=None),))) == [Level.OK]


class TestPermissions:
    def test_without_root_each_lost_source_is_named(self):
        denied = (
            SourceStatus("memory.max", State.DENIED, "in 3 of 9 cgroups", "run as root"),
            SourceStatus("io.stat", State.DENIED, "in 3 of 9 cgroups", "run as root"),
        )
        found = only(permissions, facts(uid=1000, sources=denied))
        assert found == Finding(
            "permissions",
            Level.LOST,
            "user 1000 may not read 2 sources: in 3 of 9 cgroups",
            "run as root",
            ("memory.max", "io.stat"),
        )
        assert levels(sources, facts(sources=denied)) == [Level.OK]  # said once

    def test_without_root_and_without_loss(self):
        assert only(permissions, facts(uid=1000)).text == "user 1000 may read everything that is there"


class TestSources:
    def test_sixty_files_of_a_missing_controller_are_told_by_the_controller_alone(self):
        lost = [SourceStatus(f"memory.{n}", State.ABSENT, "no memory controller") for n in range(60)]
        found = list(sources.check(facts(sources=lost, cgroups=(root("io", "cpu", "pids"),))))
        assert [finding.level for finding in found] == [Level.OK]

    def test_what_a_kernel_does_not_have_is_one_note(self):
        lost = (
            SourceStatus("pids.peak", State.ABSENT, "needs Linux 6.1"),
            SourceStatus("cpu.stat.local", State.ABSENT, "needs Linux 6.6"),
        )
        found = only(sources, facts(sources=lost), Level.NOTE)
        assert found.affected == ("pids.peak: needs Linux 6.1", "cpu.stat.local: needs Linux 6.6")

    def test_what_can_be_had_is_told_with_how(self):
        lost = (SourceStatus("zram", State.ABSENT, "no zram device", "modprobe zram"),)
        assert only(sources, facts(sources=lost), Level.NOTE).remedy == "modprobe zram"

    def test_swap_is_told_by_its_own_check(self):
        lost = (SourceStatus("swaps", State.ABSENT, "no swap device", "mkswap"),)
        assert levels(sources, facts(sources=lost, swaps={})) == [Level.OK]

    def test_a_source_that_failed_is_lost(self):
        broken = (SourceStatus("cpu.stat", State.FAILED, "no number in it can be read"),)
        assert only(sources, facts(sources=broken), Level.LOST).text == (
            "cpu.stat: no number in it can be read"
        )

    @pytest.mark.parametrize(
        ("state", "level"),
        [(State.ABSENT, Level.NOTE), (State.FAILED, Level.LOST), (State.DENIED, Level.LOST)],
    )
    def test_a_collector_that_cannot_serve(self, state, level):
        found = only(sources, facts(collectors=(SourceStatus("nvml", state, "no driver", "get one"),)), level)
        assert (found.text, found.remedy) == ("nvml: no driver", "get one")


class TestDescriptors:
    @pytest.mark.parametrize(
        ("limit", "level"),
        [(None, Level.OK), (100_000, Level.OK), (2000, Level.NOTE), (1064, Level.NOTE), (1063, Level.LOST)],
    )
    def test_against_the_limit(self, limit, level):
        found = only(descriptors, facts(descriptors=Descriptors(limit, cgroups=1000, files=8192)))
        assert found.level is level
        assert ("LimitNOFILE=9256" in found.remedy) == (level is not Level.OK)


class TestSwap:
    def test_none(self):
        found = only(swap, facts(swaps={}, zram=("zram0",)))
        assert found.level is Level.NOTE
        assert "zram0 is there, and not in use" in found.text

    def test_unknown_is_not_none(self):
        assert list(swap.check(facts(swaps=None))) == []


def test_a_namespace_of_its_own():
    assert only(namespace, facts(namespaced=True)).level is Level.LOST


def test_a_plugin_that_failed():
    found = only(plugins, facts(faults={"gpu": "ImportError: no gpu"}))
    assert (found.level, found.text) == (Level.LOST, "gpu could not be loaded: ImportError: no gpu")


def test_a_witness_that_is_denied_is_a_risk_with_its_remedy_and_one_that_is_not_there_a_note():
    denied = SourceStatus("signals", State.DENIED, "tracefs is root's", "run as root")
    absent = SourceStatus("docker", State.ABSENT, "no socket")
    well = SourceStatus("kernel_log", State.OK)
    found = list(witnesses.check(facts(witnesses=(denied, absent, well))))
    assert [(f.level, f.text, f.remedy) for f in found] == [
        (Level.RISK, "signals: tracefs is root's", "run as root"),
        (Level.NOTE, "docker: no socket", ""),
        (Level.OK, "heard when something ends: kernel_log", ""),
    ]
