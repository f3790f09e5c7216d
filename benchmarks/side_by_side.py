"""Telegraf's own ``inputs.cgroup`` and cgotel below ``inputs.execd``, on the same files in one run.

    python benchmarks/side_by_side.py [--real]
    CGOTEL_LAB_KERNELS=6.12 python -m pytest tests/lab/guest/side_by_side.py -rP    # every controller

CPU time of Telegraf and of the child that it starts, per sweep: collecting, parsing, serializing.
Both read the same files of the same recorded cgroups, with what moves in life moved in between;
with --real, of cgroups that the kernel serves; with --below, of those that stand there, as in the lab.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil  # noqa: TID253 - needed whatever is measured
from trees import Tree, move, real_trees, recorded_trees, standing_tree

ROOT = Path(__file__).parents[1]
_LIMIT_S = 600
_POLL_S = 0.05
_AGENT = '[agent]\n  interval = "{interval}s"\n  flush_interval = "{interval}s"\n  omit_hostname = true\n'
_AGENT += "  metric_buffer_limit = 100000\n  metric_batch_size = 5000\n"
_FILE = "[[outputs.file]]\n  files = ['{file}']\n  data_format = 'influx'\n"


@dataclass(frozen=True, slots=True)
class Contender:
    """An input of Telegraf; one ``marker`` stands at the start of a line ``per_sweep`` times a sweep."""

    name: str
    inputs: str
    marker: bytes
    per_sweep: int


@dataclass(frozen=True, slots=True)
class Cost:
    """Per sweep: CPU seconds of all processes, fields and bytes that arrived."""

    cpu_s: float
    fields: float
    lines: float


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cgroups", type=int, nargs="*", default=[100, 1000])
    parser.add_argument("--sweeps", type=int, default=15)
    parser.add_argument("--warm-up", type=int, default=2, help="sweeps before those that count")
    parser.add_argument("--interval", type=int, default=2, help="seconds")
    parser.add_argument("--real", action="store_true", help="cgroups of this machine's kernel; needs root")
    parser.add_argument("--below", metavar="PATH", help="the cgroups below this one, as they are")
    parser.add_argument("--telegraf", metavar="FILE", help="its executable; built without it")
    arguments = parser.parse_args()
    executable = arguments.telegraf or built()
    print("| cgroups | input | CPU ms per sweep | ratio | fields | lines |\n|---|---|---|---|---|---|")
    for tree, moves in trees(arguments):
        moved = tree if moves else None
        costs = [
            (contender.name, measured(executable, contender, moved, arguments))
            for contender in (native(tree), cgotel(tree))
        ]
        for name, cost in costs:
            ratio = cost.cpu_s / costs[0][1].cpu_s
            told = f"{cost.cpu_s * 1000:.0f} | {ratio:.2f} | {cost.fields:.0f} | {cost.lines:.0f}"
            print(f"| {len(tree.cgroups)} | {name} | {told} |", flush=True)


def built() -> str:
    """The path of a Telegraf, built where it is not there yet."""
    command = [sys.executable, "-m", "tests.peers.telegraf"]
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def trees(arguments: argparse.Namespace) -> Iterator[tuple[Tree, bool]]:
    """The cgroups to read, and whether what moves in life is to be moved in them."""
    if arguments.below:
        yield standing_tree(arguments.below), False
        return
    for cgroups in arguments.cgroups:
        with (real_trees if arguments.real else recorded_trees)(cgroups, 1) as [tree]:
            yield tree, not arguments.real


def native(tree: Tree) -> Contender:
    """Telegraf's plugin with the files that cgotel reads."""
    paths = [f"{tree.mount}/*.slice", f"{tree.mount}/*.slice/*.scope"]
    inputs = f"[[inputs.cgroup]]\n  paths = {paths}\n  files = {list(tree.files)}\n"
    return Contender("inputs.cgroup", inputs, b"cgroup,", len(tree.cgroups))


def cgotel(tree: Tree) -> Contender:
    """cgotel as it comes: with limits in force, identity, the host, and what it says of itself."""
    command = [sys.executable, "-m", "cgotel", "telegraf"]
    environment = [f"HOST_CGROUP={tree.mount}"]
    inputs = f"[[inputs.execd]]\n  command = {command}\n  environment = {environment}\n  signal = 'STDIN'\n"
    return Contender("cgotel", inputs, b"cgotel_source ", 1)


def measured(telegraf: str, contender: Contender, tree: Tree | None, asked: argparse.Namespace) -> Cost:
    """What so many sweeps cost on average, after the first few."""
    with running(telegraf, contender, asked.interval) as (process, output):
        arrived = Arrived(output, contender)
        arrived.wait(asked.warm_up, tree)
        began_cpu_s, began = cpu_seconds(process), (arrived.sweeps, arrived.fields, arrived.lines)
        arrived.wait(asked.warm_up + asked.sweeps, tree)
        number = arrived.sweeps - began[0]
        return Cost(
            (cpu_seconds(process) - began_cpu_s) / number,
            (arrived.fields - began[1]) / number,
            (arrived.lines - began[2]) / number,
        )


class Arrived:
    """What Telegraf has written, counted as it grows."""

    def __init__(self, file: Path, contender: Contender) -> None:
        self._file = file
        self._contender = contender
        self._offset = self._markers = self._moved = 0
        self.fields = self.lines = 0

    @property
    def sweeps(self) -> float:
        """Sweeps so far; what is flushed in parts counts in parts."""
        return self._markers / self._contender.per_sweep

    def wait(self, sweeps: float, tree: Tree | None) -> None:
        """Until so many have arrived; after each, what moves in life is moved in ``tree``."""
        deadline = time.monotonic() + _LIMIT_S
        while self.sweeps < sweeps:
            if time.monotonic() > deadline:
                sys.exit(f"{self._contender.name}: {self.sweeps} sweeps in {_LIMIT_S} s")
            time.sleep(_POLL_S)
            self._read()
            if self.sweeps >= self._moved + 1:
                self._moved = int(self.sweeps)
                move([tree] if tree else [], self._moved)

    def _read(self) -> None:
        if not self._file.exists():
            return
        with open(self._file, "rb") as file:
            file.seek(self._offset)
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1]
        self._offset += len(whole)
        for line in whole.splitlines():
            self._markers += line.startswith(self._contender.marker)
            self.lines += 1
            self.fields += line.count(b",") - line.partition(b" ")[0].count(b",") + 1


@contextmanager
def running(telegraf: str, contender: Contender, interval: int) -> Iterator[tuple[psutil.Process, Path]]:
    """A Telegraf with this input that writes to a file on tmpfs."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        output, config = Path(folder, "metrics.influx"), Path(folder, "telegraf.conf")
        text = _AGENT.format(interval=interval) + contender.inputs + _FILE.format(file=output)
        config.write_text(text, encoding="utf-8")
        log = Path(folder, "telegraf.log")
        with open(log, "wb") as stderr:
            process = psutil.Popen([telegraf, "--config", str(config)], stdout=stderr, stderr=stderr)
        try:
            yield process, output
        finally:
            process.terminate()
            process.wait(_LIMIT_S)
            for line in log.read_text(encoding="utf-8").splitlines():
                if " E! " in line:
                    print(line, file=sys.stderr)


def cpu_seconds(process: psutil.Process) -> float:
    """User and system time of Telegraf and of what it has started."""
    family: Sequence[psutil.Process] = [process, *process.children(recursive=True)]
    return sum(times.user + times.system for times in (one.cpu_times() for one in family))


if __name__ == "__main__":
    os.environ.pop("HOST_CGROUP", None)
    main()
