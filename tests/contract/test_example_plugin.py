"""The example plugin in an environment of its own: built as wheels, installed, seen in a snapshot."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def uv(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "uv", *arguments], check=True, capture_output=True, text=True, cwd=ROOT
    )


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """A clean virtual environment that holds the two wheels and what they declare, nothing else."""
    where = tmp_path_factory.mktemp("clean")
    for project in (ROOT, ROOT / "plugins/cgotel-example"):
        uv("build", "--quiet", "--wheel", "--out-dir", str(where / "wheels"), str(project))
    uv("venv", "--quiet", "--python", sys.executable, str(where / "venv"))
    python = where / "venv/bin/python"
    uv("pip", "install", "--quiet", "--python", str(python), *map(str, (where / "wheels").glob("*.whl")))
    return python


def cgotel(python, *arguments):
    return subprocess.run(
        [python, "-m", "cgotel", *arguments], check=True, capture_output=True, text=True, cwd="/"
    )


@pytest.mark.timeout(300)
def test_its_points_are_in_a_snapshot(environment):
    document = json.loads(cgotel(environment, "snapshot", "--format", "json").stdout)
    found = [
        metric
        for entity in document["entities"]
        for metric in entity["metrics"]
        if metric["name"] == "system.linux.entropy.available"
    ]
    assert [metric["value"] for metric in found] == [
        pytest.approx(int(Path("/proc/sys/kernel/random/entropy_avail").read_text()), abs=256)
    ]
    assert found[0]["value"] > 0


@pytest.mark.timeout(300)
def test_it_is_listed_with_its_distribution(environment):
    listed = json.loads(cgotel(environment, "plugins", "--format", "json").stdout)
    [example] = [plugin for plugin in listed["plugins"] if plugin["name"] == "example"]
    assert example["origin"] == "cgotel-example 0.1.0"
    assert example["offers"] == ["collector entropy"]
    assert not example["fault"]
