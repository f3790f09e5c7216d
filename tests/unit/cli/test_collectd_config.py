"""`cgotel collectd-config`: a configuration that fits the environment it is asked from."""

import sys
from pathlib import Path

import pytest

from cgotel.cli.collectd_config import faults, linked, module_paths, snippet
from cgotel.collectd.options import OPTIONS
from cgotel.outputs.collectd.types import TYPES_DB

ROOT = Path(__file__).parents[3]
SHARE = Path("/opt/cgotel/share/cgotel/collectd")


def test_it_names_the_paths_of_this_environment(cgotel):
    done = cgotel("collectd-config")
    for path in module_paths(ROOT / "collectd"):
        assert f'  ModulePath "{path}"' in done.stdout.splitlines()
    assert f'TypesDB "/usr/share/collectd/types.db" "{ROOT}/collectd/cgotel.types.db"' in done.stdout


def test_it_hands_on_the_configuration_file(cgotel):
    done = cgotel("--config", "/etc/other.toml", "collectd-config")
    assert '    Config "/etc/other.toml"' in done.stdout.splitlines()


def test_it_prints_the_types(cgotel):
    assert cgotel("collectd-config", "--types-db").stdout == TYPES_DB


def test_its_paths_hold_what_is_imported():
    paths = module_paths(ROOT / "collectd")
    for name in ("msgspec/__init__.py", "pluggy/__init__.py", "cgotel/__init__.py", "cgotel_collectd.py"):
        assert any((path / name).is_file() for path in paths), name


def test_every_option_stands_there():
    text = snippet([], SHARE)
    for option in OPTIONS:
        assert f"    #{option.name} {option.example}" in text.splitlines()


def test_the_configuration_in_the_repository_is_fresh():
    paths = [Path("/opt/cgotel/lib/python3.11/site-packages"), SHARE]
    expected = snippet(paths, SHARE / "cgotel.types.db")
    assert ROOT.joinpath("collectd/cgotel.conf").read_text() == expected


def test_every_option_is_documented():
    page = ROOT.joinpath("docs/collectd.md").read_text()
    for option in OPTIONS:
        assert f"| `{option.name}` |" in page


def test_the_library_of_the_daemon_is_found(tmp_path):
    plugin = tmp_path / "python.so"
    plugin.write_bytes(b"\x7fELF\0libc.so.6\0libpython3.13.so.1.0\0")
    assert linked((str(tmp_path / "none.so"), f"{tmp_path}/*.so")) == (str(plugin), "libpython3.13.so.1.0")


def test_no_daemon_is_a_fault():
    [fault] = faults(linked(()), sys.version_info.minor)
    assert "collectd's Python plugin (python.so) is not found" in fault


@pytest.mark.parametrize("minor", [9, 10, 13])
def test_another_version_is_a_fault(minor):
    told = " ".join(faults(("/p/python.so", "libpython3.12.so.1.0"), minor))
    assert f"/p/python.so is linked to Python 3.12, this environment is Python 3.{minor}" in told


def test_a_library_that_is_missing_is_a_fault():
    [fault] = faults(("/p/python.so", "libpython3.99.so.1.0"), 99)
    assert "libpython3.99.so.1.0 is missing" in fault
