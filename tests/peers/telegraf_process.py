"""A running Telegraf whose ``inputs.execd`` starts ``cgotel telegraf``, and which writes into a file."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Self

import psutil
from tests.peers.waiting import eventually
from tests.unit.outputs.parsed_lines import Line, parsed

LIMIT_S = 30.0
ENDS_WITHIN_S = 4.5
"""After 5 s Telegraf sends SIGTERM to a child that did not end with its standard input."""

_AGENT = """\
[agent]
  interval = "{interval}"
  flush_interval = "{interval}"
  omit_hostname = true
  skip_processors_after_aggregators = true
"""
_FILE = """\
[[outputs.file]]
  files = [{file}]
  data_format = "influx"
"""


def execd(signal_mode: str = "STDIN", arguments: tuple[str, ...] = (), config: str = "") -> str:
    """The input that starts ``cgotel [--config CONFIG] telegraf ARGUMENTS``."""
    chosen = ("--config", config) if config else ()
    command = [sys.executable, "-m", "cgotel", *chosen, "telegraf", *arguments]
    return (
        "[[inputs.execd]]\n"
        f"  command = {quoted(*command)}\n"
        f'  signal = "{signal_mode}"\n'
        '  restart_delay = "500ms"\n'
        '  data_format = "influx"\n'
    )


def quoted(*words: object) -> str:
    """A TOML array of literal strings."""
    return "[" + ", ".join(f"'{word}'" for word in words) + "]"


class Telegraf:
    """Runs within its ``with`` block; sees no HOST_* variables but those given."""

    def __init__(
        self,
        executable: Path,
        folder: Path,
        environment: Mapping[str, str],
        inputs: str,
        outputs: str = "",
        interval: str = "200ms",
        limit_s: float = LIMIT_S,
    ) -> None:
        self._limit_s = limit_s
        folder.mkdir(exist_ok=True)
        self._executable = executable
        self._file = folder / "metrics.influx"
        self._log = folder / "telegraf.log"
        self._config = folder / "telegraf.conf"
        agent, file = _AGENT.format(interval=interval), _FILE.format(file=f"'{self._file}'")
        self._config.write_text(agent + inputs + (outputs or file))
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("HOST_", "OTEL_"))}
        self.environment = {**clean, **environment}

    def __enter__(self) -> Self:
        with open(self._log, "wb") as log:
            self._process = psutil.Popen(self._command(), env=self.environment, stdout=log, stderr=log)
        return self

    def __exit__(self, *_: object) -> None:
        children = self._process.children() if self._process.is_running() else []
        for process in (self._process, *children):
            if process.is_running():
                process.kill()
        self._process.wait(self._limit_s)
        print(self.log)

    @property
    def log(self) -> str:
        """What it has said so far."""
        return self._log.read_text()

    @property
    def errors(self) -> list[str]:
        """What it has said at the level of an error."""
        return [line for line in self.log.splitlines() if " E! " in line]

    def lines(self, until: Callable[[list[Line]], object] = bool) -> list[Line]:
        """All that arrived so far, once ``until`` says that it is enough (some, by default)."""

        def enough() -> list[Line] | None:
            found = self.received()
            return found if until(found) else None

        return eventually(enough, self._limit_s, "what was written arrives in Telegraf's file")

    def received(self) -> list[Line]:
        """Every whole line of its file."""
        text = self._file.read_text("utf-8") if self._file.exists() else ""
        return parsed(text[: text.rfind("\n") + 1])

    def child(self) -> psutil.Process:
        """The process that execd has started."""
        return eventually(
            lambda: next(iter(self._process.children()), None), self._limit_s, "execd has a child"
        )

    def says(self, text: str) -> None:
        """Wait until it has said this."""
        eventually(lambda: text in self.log, self._limit_s, f"Telegraf says {text!r}")

    def hang(self) -> None:
        """SIGSTOP: it reads nothing any more."""
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """SIGCONT, after `hang`."""
        self._process.send_signal(signal.SIGCONT)

    def reload(self) -> None:
        """SIGHUP: it stops its plugins and starts them again."""
        self._process.send_signal(signal.SIGHUP)

    def end(self) -> int:
        """SIGTERM; its exit status, within what shows that the child did not have to be killed."""
        self._process.send_signal(signal.SIGTERM)
        return int(self._process.wait(ENDS_WITHIN_S))

    def tested(self, wait_s: int) -> list[Line]:
        """What ``telegraf --test`` prints of one gathering."""
        done = subprocess.run(
            [*self._command(), "--test", "--test-wait", str(wait_s)],
            env=self.environment,
            capture_output=True,
            text=True,
            check=True,
        )
        self._log.write_text(done.stderr)
        return parsed("".join(f"{line[2:]}\n" for line in done.stdout.splitlines() if line.startswith("> ")))

    def _command(self) -> list[str]:
        return [str(self._executable), "--config", str(self._config)]


def cgroups(lines: list[Line], path: str) -> list[Line]:
    """The lines of what a cgroup itself says, in order of time; not what its ancestors' quotas cost."""
    found = [
        line
        for line in lines
        if line.measurement == "cgotel_cgroup"
        and line.tags["path"] == path
        and "cgroup_limit_owner" not in line.tags
    ]
    return sorted(found, key=lambda line: line.time_ns)
