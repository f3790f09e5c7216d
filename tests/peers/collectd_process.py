"""A running collectd, in the foreground, with cgotel in its Python plugin and files for what it gets."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Self

from tests.peers.kernel_tree import UNWATCHED
from tests.peers.waiting import eventually

from cgotel.cli import collectd_config

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "collectd"
STOCK = collectd_config.STOCK_TYPES_DB
OWN = str(SOURCE / "cgotel.types.db")
HOST = "peer"

_LIMIT_S = 40.0
_PLUGINS = """\
LoadPlugin logfile
<Plugin logfile>
  File "{folder}/log"
  PrintSeverity true
</Plugin>
LoadPlugin unixsock
<Plugin unixsock>
  SocketFile "{folder}/sock"
  DeleteSocket true
</Plugin>
LoadPlugin uptime
LoadPlugin python
"""
_WRITER = """\
LoadPlugin csv
<Plugin csv>
  DataDir "{folder}/csv"
  StoreRates false
</Plugin>
"""
_NO_WRITER = """\
PostCacheChain "Post"
<Chain "Post">
  Target "stop"
</Chain>
"""


@cache
def executable() -> str:
    """collectd, of Debian's collectd-core."""
    found = shutil.which("collectd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    assert found is not None, "collectd is not installed: make packages"
    return found


@cache
def module_paths() -> tuple[str, ...]:
    """Where the daemon finds cgotel: this environment, or one of its own Python's version."""
    plugin = collectd_config.linked(collectd_config._PLUGINS)
    assert plugin is not None, "collectd has no Python plugin: make packages"
    version = plugin[1].removeprefix("libpython").partition(".so")[0]
    if version == f"3.{sys.version_info.minor}":
        return tuple(map(str, collectd_config.module_paths(SOURCE)))
    environment = ROOT / ".cache" / f"collectd-python{version}"
    uv = [Path(sys.executable).parent / "uv"]
    subprocess.run([*uv, "venv", "--quiet", "--allow-existing", "--python", version, environment], check=True)
    python = environment / "bin/python"
    subprocess.run([*uv, "pip", "install", "--quiet", "--python", python, ROOT], check=True)
    return str(environment / f"lib/python{version}/site-packages"), str(SOURCE)


class Collectd:
    """Starts with its ``with`` block. ``options`` are the lines within ``<Module cgotel_collectd>``.

    Without ``writes`` nothing is written of the values, so that only what they cost by themselves is left.
    ``more`` is any other configuration, ``settings`` a file of cgotel's own; None: its defaults.
    """

    def __init__(
        self,
        folder: Path,
        environment: Mapping[str, str],
        *options: str,
        interval: float = 0.5,
        types: Iterable[str] = (STOCK, OWN),
        paths: Iterable[str] | None = None,
        block: bool = True,
        writes: bool = True,
        more: str = "",
        settings: str | None = UNWATCHED,
        limit_s: float = _LIMIT_S,
    ) -> None:
        self._limit_s = limit_s
        self._folder = folder
        folder.mkdir(exist_ok=True)
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("OTEL_", "HOST_"))}
        self._environment = {**clean, **environment}
        paths = module_paths() if paths is None else paths
        if settings is not None and not any(option.startswith("Config ") for option in options):
            own = folder / "cgotel.toml"
            own.write_text(settings)
            options = (*options, f'Config "{own}"')
        module = ["<Module cgotel_collectd>", *options, "</Module>"] if block else []
        python = [
            *(f'ModulePath "{path}"' for path in (*paths, Path(__file__).parent)),
            "LogTraces true",
            'Import "cgotel_collectd"',
            'Import "collectd_observer"',
            *module,
            "<Module collectd_observer>",
            f'Folder "{folder}"',
            f"Values {str(writes).lower()}",
            "</Module>",
        ]
        lines = [
            f'Hostname "{HOST}"',
            "FQDNLookup false",
            f"Interval {interval}",
            f'PIDFile "{folder}/pid"',
            f'BaseDir "{folder}"',
            *(f'TypesDB "{file}"' for file in types),
            (_WRITER if writes else _NO_WRITER).format(folder=folder),
            _PLUGINS.format(folder=folder),
            "<Plugin python>",
            *python,
            "</Plugin>",
            more,
        ]
        self._file = folder / "collectd.conf"
        self._file.write_text("\n".join(lines) + "\n")
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        print(self.log, (self._folder / "stderr").read_text())

    @property
    def log(self) -> str:
        """What it has said so far."""
        log = self._folder / "log"
        return log.read_text() if log.exists() else ""

    @property
    def errors(self) -> list[str]:
        """What it has logged as errors, but for one of its own: naming a thread that has ended already."""
        return [line for line in self.log.splitlines() if "[error]" in line and "set_thread_name" not in line]

    @property
    def pid(self) -> int:
        """Its process id."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start it and wait until it reads."""
        with open(self._folder / "stderr", "ab") as output:
            self._folder.joinpath("modules.jsonl").unlink(missing_ok=True)
            self._process = subprocess.Popen(
                [executable(), "-f", "-C", self._file],
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        eventually(lambda: self._folder.joinpath("modules.jsonl").exists(), self._limit_s, "collectd reads")

    def check(self) -> int:
        """``collectd -t``, as Debian's unit runs it before every start: the exit status."""
        command = [executable(), "-t", "-C", self._file]
        return subprocess.run(command, env=self._environment, check=False, timeout=self._limit_s).returncode

    def signal(self, number: signal.Signals) -> None:
        """Send a signal."""
        assert self._process is not None
        self._process.send_signal(number)

    def stop(self, limit_s: float | None = None) -> int:
        """SIGTERM; its exit status."""
        assert self._process is not None
        self._process.terminate()
        return self._process.wait(limit_s or self._limit_s)

    def ended(self) -> int:
        """Wait until it has ended of itself; its exit status."""
        assert self._process is not None
        return self._process.wait(self._limit_s)

    def says(self, text: str, times: int = 1) -> str:
        """Wait until it has said this so many times; what it has said by then."""
        eventually(lambda: self.log.count(text) >= times, self._limit_s, f"collectd says {text!r}")
        return self.log

    def names(self) -> set[str]:
        """The identifiers of cgotel's values that the daemon keeps, without the host."""
        lines = self._ask("LISTVAL").splitlines()[1:]
        found = {line.partition(" ")[2].partition("/")[2] for line in lines}
        return {name for name in found if name.startswith("cgotel")}

    def value(self, name: str) -> str:
        """The number that the daemon keeps of one value, as it prints it."""
        return self._ask(f'GETVAL "{HOST}/{name}"').partition("=")[2].strip()

    def rows(self, name: str, until: Callable[[list[Row]], object] = bool) -> list[Row]:
        """What the csv plugin has written of a value, once ``until`` says that it is enough."""

        def enough() -> list[Row] | None:
            found = self._rows(name)
            return found if found and until(found) else None

        return eventually(enough, self._limit_s, f"values of {name}, now {self._rows(name)[-3:]}")

    def observed(self, name: str, until: Callable[[list[Any]], object] = bool) -> list[Any]:
        """What the observer has written down, once it is enough."""
        file = self._folder / f"{name}.jsonl"

        def enough() -> list[Any] | None:
            lines = file.read_text().splitlines(keepends=True) if file.exists() else []
            found = [json.loads(line) for line in lines if line.endswith("\n")]
            return found if until(found) else None

        return eventually(enough, self._limit_s, f"{name} are observed")

    def _rows(self, name: str) -> list[Row]:
        rows: list[Row] = []
        folder, _, file = name.partition("/")
        for day in sorted((self._folder / "csv" / HOST / folder).glob(f"{file}-20??-??-??")):
            lines = [line for line in day.read_text().splitlines(keepends=True) if line.endswith("\n")]
            names = lines[0].strip().split(",") if lines else []
            rows += [dict(zip(names, map(float, line.split(",")), strict=True)) for line in lines[1:]]
        return rows

    def _ask(self, command: str) -> str:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.settimeout(self._limit_s)
            client.connect(str(self._folder / "sock"))
            file = client.makefile("rw")
            file.write(f"{command}\n")
            file.flush()
            status = file.readline()
            count = int(status.partition(" ")[0])
            return status + "".join(file.readline() for _ in range(count))


Row = dict[str, float]
"""``epoch`` (Unix time in seconds) and a number for each data source of the type."""
