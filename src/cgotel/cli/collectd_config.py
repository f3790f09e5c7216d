"""``cgotel collectd-config``: what collectd needs to be told to run cgotel from this environment."""

from __future__ import annotations

import glob
import importlib.util
import re
import sys
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path

import click

import cgotel
from cgotel.cli.common import tell
from cgotel.outputs.collectd.types import TYPES_DB

FAILURE_STATUS = 1

STOCK_TYPES_DB = "/usr/share/collectd/types.db"

_MODULE = "cgotel_collectd"
_FILE = f"{_MODULE}.py"
_NEEDED = ("msgspec", "pluggy")
_PLUGINS = (
    "/usr/lib/collectd/python.so",
    "/usr/lib/*/collectd/python.so",
    "/usr/lib64/collectd/python.so",
    "/usr/local/lib/collectd/python.so",
    "/opt/collectd/lib/collectd/python.so",
)
_LIBRARIES = ("/lib", "/usr/lib", "/lib64", "/usr/lib64", "/lib/*-linux-gnu", "/usr/local/lib")
_LINKED = re.compile(rb"libpython3\.(\d+)\w*\.so[.\d]*")


@click.command()
@click.option("--types-db", is_flag=True, help="Print the content of cgotel.types.db instead.")
@click.pass_obj
def command(config_path: str | None, types_db: bool) -> None:
    """Print the configuration for collectd, with the paths of this environment.

    For /etc/collectd/collectd.conf.d/cgotel.conf. Exit status 1 where collectd's Python cannot load
    this environment: standard error says why.
    """
    if types_db:
        click.echo(TYPES_DB, nl=False)
        return
    folder = _folder()
    if folder is None:
        tell(f"{_FILE} is not installed with this package: copy collectd/ of its source")
        sys.exit(FAILURE_STATUS)
    click.echo(snippet(module_paths(folder), folder / "cgotel.types.db", config_path), nl=False)
    for fault in (found := list(faults(linked(_PLUGINS), sys.version_info.minor))):
        tell(fault)
    if found:
        sys.exit(FAILURE_STATUS)


def snippet(paths: Iterable[Path], types_db: Path, config_path: str | None = None) -> str:
    """The configuration; every option stands there as a comment with its default or an example."""
    from cgotel.collectd.options import OPTIONS

    lines = [
        "# cgotel in collectd. Made by `cgotel collectd-config`.",
        f'TypesDB "{STOCK_TYPES_DB}" "{types_db}"',
        "",
        "LoadPlugin python",
        "<Plugin python>",
        *(f'  ModulePath "{path}"' for path in paths),
        f'  Import "{_MODULE}"',
        f'  <Module "{_MODULE}">',
    ]
    for option in OPTIONS:
        lines.append(f"    # {option.meaning}")
        chosen = option.name == "Config" and config_path
        lines.append(f'    Config "{config_path}"' if chosen else f"    #{option.name} {option.example}")
    return "\n".join([*lines, "  </Module>", "</Plugin>", ""])


def module_paths(folder: Path) -> list[Path]:
    """Where the daemon finds the module, cgotel and what it needs; it reads no .pth file."""
    found = [_home(name) for name in (*_NEEDED, "cgotel")]
    return list(dict.fromkeys([*(path for path in found if path is not None), folder]))


def _home(package: str) -> Path | None:
    spec = importlib.util.find_spec(package)
    return None if spec is None or spec.origin is None else Path(spec.origin).parents[1]


def _folder() -> Path | None:
    """The folder that holds the module: beside the source, else where the package was installed to."""
    files = [Path(cgotel.__file__).parents[2] / "collectd" / _FILE, *_installed()]
    return next((file.parent for file in files if file.is_file()), None)


def _installed() -> Iterator[Path]:
    """The module's file by the package's own list: each installation scheme has another place for it."""
    try:
        files = metadata.files("cgotel") or ()
    except metadata.PackageNotFoundError:
        return
    yield from (Path(str(file.locate())).resolve() for file in files if file.name == _FILE)


def linked(patterns: Iterable[str]) -> tuple[str, str] | None:
    """collectd's Python plugin, and the library that it is linked to; None where it is not found."""
    for plugin in (file for pattern in patterns for file in glob.glob(pattern)):
        found = _LINKED.search(Path(plugin).read_bytes())
        if found is not None:
            return plugin, found[0].decode()
    return None


def faults(plugin: tuple[str, str] | None, minor: int) -> Iterator[str]:
    """Why collectd here cannot load an environment of Python 3.``minor``."""
    if plugin is None:
        yield "collectd's Python plugin (python.so) is not found here; install collectd-core"
        return
    file, library = plugin
    version = _LINKED.match(library.encode())
    assert version is not None
    if int(version[1]) != minor:
        yield (
            f"{file} is linked to Python 3.{int(version[1])}, this environment is Python 3.{minor}: collectd "
            f"cannot load it; make one with python3.{int(version[1])} -m venv"
        )
    if not any(glob.glob(f"{folder}/{library}") for folder in _LIBRARIES):
        yield f"{library} is missing, which {file} needs: install libpython3.{int(version[1])}"
