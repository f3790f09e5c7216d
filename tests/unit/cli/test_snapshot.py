"""`cgotel snapshot`: one sweep, in three formats, and every way that it can go wrong in one line."""

import json
import os
import resource
import subprocess
import sys

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.unit.cli.conftest import CGOTEL
from tests.unit.cli.host_tree import CONTAINER, GIB, POD, SERVICE

from cgotel.kernel.roots import Roots


def entities(done):
    """Entities of a JSON snapshot by their path, the host under its kind."""
    found = json.loads(done.stdout)["entities"]
    return {e["attributes"].get("process.linux.cgroup", e["kind"]).removeprefix("0::"): e for e in found}


def metrics(entity, name):
    return [metric for metric in entity["metrics"] if metric["name"] == name]


def assert_one_line(done, *parts):
    assert done.returncode == 1
    [line] = done.stderr.splitlines()
    assert line.startswith("cgotel: ")
    for part in parts:
        assert part in line


def test_the_table_names_what_is_held_back_and_whose_limit_is_in_force(cgotel):
    done = cgotel("snapshot")
    assert (done.returncode, done.stderr) == (0, "")
    title, host, _, _, heads, *rows = done.stdout.splitlines()
    assert "totals since each cgroup began" in title
    assert "memory 1.0s (full 500ms)" in host
    assert "memory available 6.00G of 8.00G" in host
    assert heads.split()[:2] == ["cgroup", "kind"]
    pod = "8f0e7c52-41d3-4b1a-9a6f-2c2b6f6e1d11"
    assert [row.split()[:2] for row in rows[:2]] == [
        ["3f4e5d6c7b8a", "container"],
        ["web.service", "service"],
    ]
    assert rows[0].split()[-5:] == ["1.00G", "2.00G", pod, "1.00G", pod]
    assert rows[1].split()[-5:] == ["1.00G", "4.00G", "self", "3.00G", "self"]


def test_json_agrees_with_the_files(cgotel):
    found = entities(cgotel("snapshot", "--format", "json"))
    container = found[CONTAINER]
    assert container["kind"] == "container"
    [usage] = metrics(container, "container.memory.usage")
    assert (usage["value"], usage["source"], usage["unit"]) == (GIB, "memory.current", "By")
    [limit] = metrics(container, "cgroup.memory.effective_limit")
    assert (limit["value"], limit["attributes"]) == (2 * GIB, {"cgroup.limit.owner": POD})
    assert [(m["value"], m["raw"]) for m in metrics(container, "container.cpu.time")] == [
        (2.0, 2_000_000),
        (1.0, 1_000_000),
    ]
    assert found["host"]["kind"] == "host"


def test_json_says_what_is_not_measured_and_why(cgotel):
    document = json.loads(cgotel("snapshot", "--format", "json").stdout)
    sources = {source["name"]: source for source in document["sources"]}
    assert sources["memory.current"]["state"] == "ok"
    assert sources["memory.swap.peak"] == {
        "name": "memory.swap.peak",
        "state": "absent",
        "reason": "needs Linux 6.5",
        "remedy": "",
    }


def test_json_agrees_with_this_kernel():
    """The host's pressure moves on: what was read lies between a look before and a look after."""

    def total():
        with open("/proc/pressure/cpu", encoding="ascii") as file:
            return int(file.readline().rpartition("=")[2])

    before = total()
    done = subprocess.run([*CGOTEL, "snapshot", "--format", "json"], check=True, capture_output=True)
    found = [m for e in json.loads(done.stdout)["entities"] for m in e["metrics"]]
    [raw] = [m["raw"] for m in found if m["source"] == "pressure.cpu.some.total"]
    assert before <= raw <= total()


def test_prometheus_holds_every_point_of_the_json(cgotel):
    points = [m for e in entities(cgotel("snapshot", "--format", "json")).values() for m in e["metrics"]]
    done = cgotel("snapshot", "--format", "prometheus")
    assert (done.returncode, done.stderr) == (0, "")
    samples = [s for family in text_string_to_metric_families(done.stdout) for s in family.samples]
    assert len(samples) == len(points) > 50
    assert sorted(s.value for s in samples if s.name == "cgroup_memory_effective_limit_bytes") == sorted(
        float(m["value"]) for m in points if m["name"] == "cgroup.memory.effective_limit"
    )


@pytest.mark.parametrize("form", ["json", "prometheus", "table"])
def test_only_the_cgroups_that_were_asked_for(cgotel, tree, form):
    done = cgotel("snapshot", "--format", form, POD, f"{tree.mount}{SERVICE}")
    assert done.returncode == 0
    assert "8f0e7c52" in done.stdout
    assert "web.service" in done.stdout
    assert CONTAINER not in done.stdout
    assert "3f4e5d6c7b8a" not in done.stdout


def test_a_path_may_lack_its_first_slash(cgotel):
    done = cgotel("snapshot", "--format", "json", SERVICE.lstrip("/") + "/")
    assert list(entities(done)) == [SERVICE]


def test_two_sweeps_give_rates(cgotel):
    [container] = entities(cgotel("snapshot", "--format", "json", "--interval", "0.05", CONTAINER)).values()
    assert [metric["value"] for metric in metrics(container, "container.cpu.usage")] == [0.0]
    [container] = entities(cgotel("snapshot", "--format", "json", CONTAINER)).values()
    assert metrics(container, "container.cpu.usage") == []
    title = cgotel("snapshot", "--interval", "0.05").stdout.splitlines()[0]
    assert "   over " in title
    assert "totals" not in title


@pytest.mark.parametrize("seconds", ["nan", "inf", "-inf", "0", "fast"])
def test_an_interval_is_a_number_of_seconds(cgotel, seconds):
    done = cgotel("snapshot", "--interval", seconds)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("Error: Invalid value for '--interval':")


def test_an_unknown_cgroup_is_one_line(cgotel, tree):
    assert_one_line(cgotel("snapshot", "/system.slice/nope"), "/system.slice/nope", str(tree.mount))


def test_a_cgroup_that_the_configuration_leaves_out_is_one_line(cgotel, tmp_path):
    config = tmp_path / "cgotel.toml"
    config.write_text(f'[collectors.cgroup]\nexclude = ["{SERVICE}"]\n')
    done = cgotel("--config", str(config), "snapshot", SERVICE)
    assert_one_line(done, SERVICE, "[collectors.cgroup]")


def test_a_cgroup_that_may_not_be_looked_into_is_one_line(cgotel, tree):
    folder = tree.mount / SERVICE[1:]
    folder.chmod(0)
    done = cgotel("snapshot", SERVICE, privileged=False)
    folder.chmod(0o755)
    assert_one_line(done, SERVICE, "Permission denied")


def test_a_hostile_path_is_shown_as_its_escape(cgotel):
    assert_one_line(cgotel("snapshot", "/a\x1b[2J\nb"), r"/a\x1b[2J\nb")


def test_a_wrong_configuration_is_one_line_and_status_2(cgotel, tmp_path):
    config = tmp_path / "cgotel.toml"
    config.write_text("[agent]\nintervall = 3\n")
    done = cgotel("--config", str(config), "snapshot")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1


def test_a_host_without_cgroup_v2_still_says_what_it_can(cgotel, tree, tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    done = cgotel("snapshot", env={**tree.environment, "HOST_CGROUP": str(empty)})
    assert done.returncode == 0
    assert "memory available 6.00G" in done.stdout
    assert "no cgroup with processes in it" in done.stdout


@pytest.mark.parametrize("variable", ["HOST_CGROUP", "HOST_PROC", "HOST_SYS", "HOST_ROOT"])
def test_a_tree_that_is_not_where_it_is_said_to_be_is_one_line(cgotel, tree, variable):
    done = cgotel("snapshot", env={**tree.environment, variable: "/nowhere"})
    assert (done.returncode, done.stderr) == (2, f"cgotel: {variable}=/nowhere: no such directory\n")


def test_where_nothing_can_be_read_it_says_so(cgotel, tree, tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    nothing = {"HOST_PROC": str(empty), "HOST_SYS": str(empty), "HOST_CGROUP": str(empty)}
    done = cgotel("snapshot", env={**tree.environment, **nothing})
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "cgotel: nothing can be read here; cgotel doctor says why"


class TestOutput:
    def test_a_file_is_replaced_in_one_step(self, cgotel, tmp_path):
        file = tmp_path / "cgotel.prom"
        file.write_text("old")
        file.chmod(0o640)
        before = file.stat()
        assert cgotel("snapshot", "--format", "prometheus", "--output", str(file)).returncode == 0
        after = file.stat()
        assert after.st_ino != before.st_ino  # a reader that has it open keeps the old one whole
        assert after.st_mode == before.st_mode
        assert file.read_text().startswith("# HELP ")
        assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["cgotel.prom"]

    def test_a_new_file_may_be_read_as_the_umask_says(self, cgotel, tmp_path):
        file = tmp_path / "new.json"
        cgotel("snapshot", "--format", "json", "--output", str(file), umask=0o027)
        assert file.stat().st_mode & 0o777 == 0o640

    def test_a_symbolic_link_stays_one(self, cgotel, tmp_path):
        (tmp_path / "link").symlink_to("target")
        cgotel("snapshot", "--output", str(tmp_path / "link"))
        assert (tmp_path / "link").is_symlink()
        assert "cgotel" in (tmp_path / "target").read_text()

    def test_what_is_no_file_is_written_to_and_not_replaced(self, cgotel):
        assert cgotel("snapshot", "--output", "/dev/null").returncode == 0
        assert os.path.exists("/dev/null")
        assert not os.path.isfile("/dev/null")

    def test_no_name_is_no_file(self, cgotel):
        done = cgotel("snapshot", "--output", "")
        assert done.returncode == 2
        assert done.stderr.splitlines()[-1].endswith("it needs the name of a file.")

    def test_a_dash_is_standard_output(self, cgotel, tmp_path):
        done = cgotel("snapshot", "--output", "-", cwd=tmp_path)
        assert "web.service" in done.stdout
        assert not (tmp_path / "-").exists()

    def test_a_folder_that_does_not_exist(self, cgotel, tmp_path):
        file = str(tmp_path / "nowhere" / "x.prom")
        assert_one_line(cgotel("snapshot", "--output", file), file, "No such file or directory")

    def test_a_folder_that_may_not_be_written_to(self, cgotel):
        assert_one_line(cgotel("snapshot", "--output", "/sys/kernel/x.prom"), "/sys/kernel/x.prom")

    def test_a_file_that_cannot_be_written_whole_leaves_the_old_one(self, cgotel, tmp_path):
        file = tmp_path / "cgotel.json"
        file.write_text("old")

        def at_most_a_kibibyte():
            resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))

        done = cgotel("snapshot", "--format", "json", "--output", str(file), preexec_fn=at_most_a_kibibyte)
        assert_one_line(done, str(file), "File too large")
        assert file.read_text() == "old"
        assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["cgotel.json"]

    def test_a_full_disk_behind_standard_output(self, cgotel):
        with open("/dev/full", "w", encoding="ascii") as full:
            done = cgotel("snapshot", capture_output=False, stdout=full, stderr=subprocess.PIPE)
        assert_one_line(done, "standard output: No space left on device")

    def test_a_closed_pipe_ends_it_quietly(self, cgotel):
        read_end, write_end = os.pipe()
        os.close(read_end)
        done = cgotel("snapshot", capture_output=False, stdout=write_end, stderr=subprocess.PIPE)
        os.close(write_end)
        assert (done.returncode, done.stderr) == (1, "")


MODULES = "import sys; print('\\n'.join(sys.modules))"
SNAPSHOT = """
from cgotel.cli import main
main(["snapshot", "--format", {!r}, "--output", "/dev/null"], standalone_mode=False)
"""


def packages_after(code, environment):
    """Top-level names that are loaded; those that an environment's .pth files bring in are left out."""
    runs = [
        subprocess.run(
            [sys.executable, "-c", text], env=environment, check=True, capture_output=True, text=True
        )
        for text in (f"{code}\n{MODULES}", MODULES)
    ]
    loaded, anyway = ({module.partition(".")[0] for module in run.stdout.split()} for run in runs)
    return loaded - anyway


@pytest.mark.parametrize("form", ["table", "json", "prometheus"])
def test_it_loads_little(tree, form):
    loaded = packages_after(SNAPSHOT.format(form), tree.environment)
    assert loaded - sys.stdlib_module_names <= {"cgotel", "click", "pluggy", "msgspec", "typing_extensions"}
    assert not loaded & {"asyncio", "http", "multiprocessing", "ssl", "unittest", "xml"}


def test_its_real_tree_is_found_where_the_kernel_has_it():
    mount = Roots.discover().cgroup
    done = subprocess.run([*CGOTEL, "snapshot", f"{mount}/nope"], capture_output=True, text=True, check=False)
    assert_one_line(done, f"/nope: no such cgroup in {mount}")
