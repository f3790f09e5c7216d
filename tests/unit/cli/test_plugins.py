"""`cgotel plugins`: what was found, where, and what failed, whatever else the configuration says."""

import json

import pytest


@pytest.fixture
def broken(tree, tmp_path):
    """The environment of a host with a plugin that cannot be imported, installed as distributions are."""
    folder = tmp_path / "site"
    info = folder / "cgotel_broken-1.2.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: cgotel-broken\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text("[cgotel]\nbroken = cgotel_broken\n")
    (folder / "cgotel_broken.py").write_text("raise RuntimeError('two\\nlines \\x1b[2J')\n")
    return {**tree.environment, "PYTHONPATH": str(folder)}


def listed(done):
    return {plugin["name"]: plugin for plugin in json.loads(done.stdout)["plugins"]}


def test_the_built_ins_are_listed_with_what_they_offer(cgotel):
    done = cgotel("plugins", "--format", "json")
    assert done.returncode == 0
    assert listed(done)["collectors.cgroup"] == {
        "name": "collectors.cgroup",
        "origin": "built-in",
        "offers": ["collector cgroup"],
        "fault": None,
    }


def test_the_table_has_the_same(cgotel):
    done = cgotel("plugins")
    titles, *rows = done.stdout.splitlines()
    assert titles.split() == ["plugin", "from", "offers", "fault"]
    assert ["collectors.cgroup", "built-in", "collector", "cgroup"] in [row.split() for row in rows]
    assert (done.returncode, done.stderr) == (0, "")


def test_one_that_failed_is_listed_with_its_fault_and_status_1(cgotel, broken):
    done = cgotel("plugins", "--format", "json", env=broken)
    assert done.returncode == 1
    assert listed(done)["broken"] == {
        "name": "broken",
        "origin": "cgotel-broken 1.2",
        "offers": [],
        "fault": "RuntimeError: two\nlines \x1b[2J",
    }


def test_in_the_table_a_fault_is_one_line_of_printable_text(cgotel, broken):
    done = cgotel("plugins", env=broken)
    [row] = [line for line in done.stdout.splitlines() if line.startswith("broken")]
    assert row.split(maxsplit=4) == [
        "broken",
        "cgotel-broken",
        "1.2",
        "-",
        r"RuntimeError: two\nlines \x1b[2J",
    ]


def test_one_that_is_disabled_is_no_failure(cgotel, broken, tmp_path):
    config = tmp_path / "cgotel.toml"
    config.write_text('[plugins]\ndisabled = ["broken"]\n')
    done = cgotel("--config", str(config), "plugins", "--format", "json", env=broken)
    assert done.returncode == 0
    assert listed(done)["broken"]["fault"] == "disabled in the configuration"


def test_it_works_where_the_configuration_does_not(cgotel, broken, tmp_path):
    config = tmp_path / "cgotel.toml"
    config.write_text("[collectors.cgroup]\nnonsense = true\n")
    assert cgotel("--config", str(config), "snapshot", env=broken).returncode == 2
    assert "broken" in listed(cgotel("--config", str(config), "plugins", "--format", "json", env=broken))


def test_every_other_command_tells_of_a_fault_in_one_line(cgotel, broken):
    done = cgotel("snapshot", env=broken)
    assert done.returncode == 0
    assert done.stderr == ("cgotel: plugin broken (cgotel-broken 1.2): RuntimeError: two\\nlines \\x1b[2J\n")


def test_a_name_to_disable_that_no_plugin_has_is_one_line(cgotel, tmp_path):
    file = tmp_path / "cgotel.toml"
    file.write_text('[plugins]\ndisabled = ["cgroup"]\n')
    for command in (["plugins"], ["snapshot"]):
        done = cgotel("--config", str(file), *command)
        assert done.returncode == 0
        [told] = done.stderr.splitlines()
        assert told.startswith("cgotel: [plugins] disabled: no plugin is called cgroup; known: ")
        assert "collectors.cgroup" in told
