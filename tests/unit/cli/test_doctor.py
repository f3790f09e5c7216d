"""`cgotel doctor` on hosts that lack something, and on this one."""

import json
import subprocess

import pytest
from tests.unit.cli.conftest import CGOTEL
from tests.unit.cli.host_tree import CONTAINER, GIB, POD, SERVICE


def findings(done):
    return json.loads(done.stdout)["findings"]


def of(done, check):
    return [(f["level"], f["text"]) for f in findings(done) if f["check"] == check]


def test_a_host_where_everything_is_there(cgotel):
    done = cgotel("doctor", "--format", "json")
    assert done.returncode == 0
    assert [f for f in findings(done) if f["level"] in ("lost", "risk")] == []
    assert of(done, "controllers") == [("ok", "memory, io, cpu, pids reach every cgroup")]
    assert of(done, "swap") == [("ok", "swap: /dev/vdb 4.00G")]


def test_text_says_what_to_do_and_ends_with_a_verdict(cgotel, tree):
    tree.write("proc/cmdline", "quiet psi=0\n")
    for resource in ("cpu", "memory", "io"):
        (tree.folder / "proc/pressure" / resource).unlink()
    done = cgotel("doctor")
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert lines[0].split(maxsplit=2) == ["lost", "pressure", "PSI is switched off by psi=0"]
    assert lines[1].strip() == "to do: take psi=0 off the kernel command line"
    assert lines[-1] == "1 thing is lost"
    assert max(map(len, lines)) <= 100


def test_a_hybrid_mount(cgotel, tree):
    tree.write(
        "proc/cgroups", "#subsys_name\thierarchy\tnum_cgroups\tenabled\nmemory\t4\t9\t1\nblkio\t7\t9\t1\n"
    )
    tree.mount.rename(tree.folder / "v2")
    tree.mount.mkdir()
    (tree.folder / "v2").rename(tree.mount / "unified")
    tree.mount = tree.mount / "unified"
    tree.cgroup("/", {"cgroup.controllers": "cpu pids\n"})
    done = cgotel("doctor", "--format", "json")
    [(level, text)] = of(done, "hierarchy")
    assert level == "lost"
    assert text.startswith("hybrid mount: memory, io are on cgroup v1")
    assert done.returncode == 1


def test_a_controller_that_is_not_passed_on_is_named_with_where(cgotel, tree):
    tree.cgroup("/system.slice", {"cgroup.subtree_control": "memory pids\n"})
    done = cgotel("doctor", "--format", "json")
    found = {f["text"].split()[0]: f for f in findings(done) if f["check"] == "controllers"}
    assert found["io"]["level"] == "lost"
    assert found["io"]["affected"] == ["/system.slice"]
    assert "DefaultIOAccounting=yes" in found["io"]["remedy"]
    assert found["cpu"]["level"] == "note"


def test_a_memory_limit_below_the_peak(cgotel, tree):
    tree.cgroup(SERVICE, {"memory.peak": f"{5 * GIB}\n"})
    events = "low 0\nhigh 0\nmax 12\noom 2\noom_kill 1\noom_group_kill 0\n"
    tree.cgroup(CONTAINER, {"memory.events.local": events})
    done = cgotel("doctor", "--format", "json")
    [risk] = [f for f in findings(done) if f["level"] == "risk"]
    assert risk["affected"] == [
        f"{CONTAINER}: peak 1.00G of 8.00G, max 12, oom 2, oom_kill 1",
        f"{SERVICE}: peak 5.00G of 4.00G",
    ]
    assert done.returncode == 0  # it was measured


def test_a_cgroup_whose_pressure_is_switched_off(cgotel, tree):
    tree.cgroup(POD, {"cgroup.pressure": "0\n"})
    done = cgotel("doctor", "--format", "json")
    [finding] = [f for f in findings(done) if f["check"] == "pressure"]
    assert (finding["level"], finding["affected"]) == ("lost", [POD])


def test_a_container_with_a_cgroup_namespace_of_its_own(cgotel, tree):
    tree.cgroup("/", {"cgroup.type": "domain\n"})
    done = cgotel("doctor", "--format", "json")
    [(level, text)] = of(done, "namespace")
    assert level == "lost"
    assert "own cgroup namespace" in text


def test_what_may_not_be_read_is_named(cgotel, tree):
    (tree.mount / SERVICE[1:] / "memory.max").chmod(0)
    done = cgotel("doctor", "--format", "json", privileged=False)
    [finding] = [f for f in findings(done) if f["check"] == "permissions"]
    assert (finding["level"], finding["affected"]) == ("lost", ["memory.max"])
    assert "in 1 of 6 cgroups" in finding["text"]
    assert done.returncode == 1


def test_no_cgroup_v2_at_all(cgotel, tree, tmp_path):
    empty = {name: value for name, value in tree.environment.items() if name != "HOST_CGROUP"}
    done = cgotel("doctor", "--format", "json", env={**empty, "HOST_SYS": str(tmp_path)})
    [finding] = [f for f in findings(done) if f["check"] == "hierarchy"]
    assert finding["level"] == "lost"
    assert "systemd.unified_cgroup_hierarchy=1" in finding["remedy"]
    assert "cgroup: " not in "".join(text for _, text in of(done, "sources"))  # said once


def test_a_plugin_that_failed(cgotel, tree, tmp_path):
    info = tmp_path / "site/cgotel_x-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: cgotel-x\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[cgotel]\nx = no_such_module\n")
    done = cgotel(
        "doctor", "--format", "json", env={**tree.environment, "PYTHONPATH": str(tmp_path / "site")}
    )
    [(level, text)] = of(done, "plugins")
    assert level == "lost"
    assert "no_such_module" in text


def test_a_wrong_configuration_is_status_2(cgotel, tmp_path):
    config = tmp_path / "cgotel.toml"
    config.write_text("[agent]\nintervall = 3\n")
    assert cgotel("--config", str(config), "doctor").returncode == 2


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_full_disk_behind_standard_output(cgotel, form):
    with open("/dev/full", "w", encoding="ascii") as full:
        done = cgotel("doctor", "--format", form, capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (1, "cgotel: standard output: No space left on device\n")


def test_this_machine():
    """Whatever it lacks: the status says whether something is lost, and every loss has a remedy."""
    done = subprocess.run(
        [*CGOTEL, "doctor", "--format", "json"], capture_output=True, text=True, check=False
    )
    lost = [finding for finding in findings(done) if finding["level"] == "lost"]
    assert done.returncode == (1 if lost else 0)
    assert all(finding["remedy"] for finding in lost)
    assert done.stderr == ""
