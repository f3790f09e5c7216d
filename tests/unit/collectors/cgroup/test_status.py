"""Which files can be read here, and for those that cannot: why, and what to do."""

import os

import pytest
from tests.unit.collectors.cgroup.kernel_files import LEAF
from tests.unit.kernel.real import unprivileged

from cgotel.contract import SourceStatus, State
from cgotel.kernel.roots import Roots


def statuses(cgroups) -> dict[str, SourceStatus]:
    return {status.name: status for status in cgroups.collector.sources()}


def test_what_one_cgroup_has_is_ok_and_nothing_to_say(cgroups) -> None:
    cgroups.write({"a": {"b": LEAF}})
    cgroups.sweep()
    said = statuses(cgroups)
    assert said["memory.max"] == SourceStatus("memory.max", State.OK)
    assert {name for name, status in said.items() if status.state is not State.OK} == set()
    assert "cgroup.procs" in said


@pytest.mark.parametrize(
    ("file", "reason", "remedy"),
    [
        ("memory.peak", "needs Linux 5.19", ""),
        ("cpu.stat.local", "needs Linux 6.6", ""),
        ("irq.pressure", "needs Linux 6.1 with IRQ time accounting", ""),
        (
            "memory.max",
            "its controller is enabled nowhere below the root",
            "write +memory to cgroup.subtree_control",
        ),
        ("cpu.pressure", "this kernel has no PSI, or it is off", "boot with psi=1"),
        ("cgroup.stat.local", "needs Linux 6.18", ""),
    ],
)
def test_an_absent_file_says_what_it_would_take(cgroups, file: str, reason: str, remedy: str) -> None:
    cgroups.write({"a": {name: content for name, content in LEAF.items() if name != file}})
    cgroups.sweep()
    status = statuses(cgroups)[file]
    assert (status.state, status.reason) == (State.ABSENT, reason)
    assert status.remedy.startswith(remedy)
    assert bool(status.remedy) == bool(remedy)


def test_a_controller_that_this_hierarchy_does_not_have_is_named_as_the_cause(cgroups) -> None:
    cgroups.write({"cgroup.controllers": "cpu\n", "a": {"cpu.stat": LEAF["cpu.stat"]}})
    cgroups.sweep()
    status = statuses(cgroups)["memory.max"]
    assert status.reason == "its controller is not available to cgroup v2 here"
    assert "cgroup_disable=memory" in status.remedy


def test_on_a_hybrid_mount_that_is_the_cause(cgroups) -> None:
    roots = cgroups.roots
    cgroups.roots = Roots(roots.proc, roots.sys, roots.cgroup, hybrid=True)
    cgroups.write({"cgroup.controllers": "\n", "a": {"cpu.stat": LEAF["cpu.stat"]}})
    cgroups.configure()
    cgroups.sweep()
    status = statuses(cgroups)["pids.max"]
    assert status.reason == "its controller is not on cgroup v2: hybrid mount"
    assert "systemd.unified_cgroup_hierarchy=1" in status.remedy


def test_with_the_root_alone_what_only_others_have_is_no_fault(cgroups) -> None:
    cgroups.sweep()
    said = statuses(cgroups)
    assert said["memory.max"].reason == "only cgroups below the root have it, and there is none"
    assert said["cpu.stat.local"].reason == "needs Linux 6.6"


def test_a_file_that_is_denied_in_one_cgroup_is_not_ok_because_another_can_be_read(cgroups) -> None:
    for path in (cgroups.mount, *cgroups.mount.parents[:3]):
        path.chmod(0o755)
    cgroups.write({"a": LEAF, "b": LEAF})
    (cgroups.mount / "b/io.stat").chmod(0)
    with unprivileged():
        cgroups.sweep()
    status = statuses(cgroups)["io.stat"]
    assert (status.state, status.reason) == (State.DENIED, "Permission denied in 1 of 3 cgroups")
    assert "root" in status.remedy


def test_a_failure_says_which(cgroups) -> None:
    cgroups.write({"a": LEAF})
    (cgroups.mount / "a/io.stat").unlink()
    (cgroups.mount / "a/io.stat").symlink_to("io.stat")
    cgroups.sweep()
    status = statuses(cgroups)["io.stat"]
    assert (status.state, status.reason) == (
        State.FAILED,
        "Too many levels of symbolic links in 1 of 2 cgroups",
    )


def test_cgroups_that_may_not_be_opened_are_one_line_and_named(cgroups) -> None:
    for path in (cgroups.mount, *cgroups.mount.parents[:3]):
        path.chmod(0o755)
    cgroups.write({"a": LEAF, "b": {**LEAF, "c": LEAF}, "d": LEAF})
    for name in ("b", "d"):
        (cgroups.mount / name).chmod(0)
    with unprivileged():
        readings = cgroups.sweep()
    assert set(readings) == {"/", "/a"}
    status = statuses(cgroups)["cgroups"]
    assert status.state is State.DENIED
    assert status.reason.startswith("Permission denied: 2 could not be opened, /")
    for name in ("b", "d"):
        (cgroups.mount / name).chmod(0o755)
    assert set(cgroups.sweep(10)) == {"/", "/a", "/b", "/b/c", "/d"}
    assert "cgroups" not in statuses(cgroups)


def test_a_file_that_the_kernel_refuses_is_off(cgroup) -> None:
    """On the real kernel: a threaded cgroup refuses its list of processes."""
    from cgotel.collectors.cgroup import CgroupCollector, CgroupConfig
    from cgotel.contract import Tick

    (cgroup / "threaded").mkdir()
    (cgroup / "threaded/cgroup.type").write_text("threaded")
    collector = CgroupCollector(CgroupConfig(), Roots(cgroup=str(cgroup)))
    collector.start()
    assert len(list(collector.collect(Tick(0, 0)))) == 2
    [status] = [status for status in collector.sources() if status.name == "cgroup.procs"]
    collector.close()
    assert (status.state, status.reason) == (State.OFF, "Operation not supported in 1 of 2 cgroups")


def test_before_the_first_sweep_there_is_nothing_to_say(cgroups) -> None:
    assert statuses(cgroups) == {}
    cgroups.collector.close()
    assert statuses(cgroups) == {}
    assert os.path.isdir(cgroups.mount)
