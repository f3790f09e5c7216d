"""What collectd needs comes with the package: built as for a user, installed, asked where it is."""

import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SHIPPED = ("README.md", "cgotel.conf", "cgotel.types.db", "cgotel_collectd.py")

pytestmark = pytest.mark.timeout(300)


def uv(*arguments):
    command = [sys.executable, "-m", "uv", *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A folder with the source distribution, and the wheel that was built from it."""
    folder = tmp_path_factory.mktemp("dist")
    uv("build", "--quiet", "--out-dir", folder, ROOT)
    return folder


@pytest.fixture(scope="module")
def environment(built, tmp_path_factory):
    """A clean virtual environment that holds the wheel and what it declares."""
    folder = tmp_path_factory.mktemp("clean") / "venv"
    uv("venv", "--quiet", "--python", sys.executable, folder)
    [wheel] = built.glob("*.whl")
    uv("pip", "install", "--quiet", "--python", folder / "bin/python", wheel)
    return folder


def test_the_source_distribution_has_the_folder(built):
    [archive] = built.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        names = {name.partition("/")[2] for name in opened.getnames()}
    assert names >= {f"collectd/{name}" for name in SHIPPED}


def test_the_environment_has_the_files_as_they_are(environment):
    for name in SHIPPED:
        shared = environment / "share/cgotel/collectd" / name
        assert shared.read_bytes() == (ROOT / "collectd" / name).read_bytes()


def test_the_configuration_names_where_they_are(environment):
    shared = environment / "share/cgotel/collectd"
    done = subprocess.run(
        [environment / "bin/cgotel", "collectd-config"], check=False, capture_output=True, text=True, cwd="/"
    )
    assert f'TypesDB "/usr/share/collectd/types.db" "{shared}/cgotel.types.db"' in done.stdout.splitlines()
    assert f'  ModulePath "{shared}"' in done.stdout.splitlines()
    [packages] = (environment / "lib").glob("python3.*/site-packages")
    assert f'  ModulePath "{packages}"' in done.stdout.splitlines()
    assert "copy collectd/" not in done.stderr
