"""Who sweeps a tree: cgotel's collector, the C floor, and what one would write first in Python.

Each is alone in its process: a heap that one fills would make another's garbage collections longer,
and the limit of open files is one process's.
"""

from __future__ import annotations

import math
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Protocol

from floor import Floor
from processes import Process
from trees import Tree

from cgotel.collectors.cgroup import CgroupCollector, CgroupConfig
from cgotel.contract import Tick
from cgotel.kernel.roots import Roots
from cgotel.model import Reading

_SWEEP_NS = 10 * 10**9
_NEVER_S = 1e9
_SPARE = 128  # descriptors that are no cgroup's
_SYSTEM_CALLS = frozenset(("open", "close", "fstat", "stat", "lstat", "scandir", "listdir"))


class Sweeps(Protocol):
    """What takes part."""

    def sweep(self) -> float:
        """Read the whole tree once; return the CPU seconds it took."""
        ...

    def calls(self) -> Counter[str]:
        """System calls of one sweep by name."""
        ...

    def close(self) -> None:
        """Let go of everything."""
        ...


class Collecting:
    """The real collector over a tree; each sweep is ten seconds after the last."""

    def __init__(self, tree: Tree, keep_open_files: int, slow_interval: float = _NEVER_S) -> None:
        config = CgroupConfig(keep_open_files=keep_open_files, slow_interval=slow_interval)
        self._collector = CgroupCollector(config, Roots(cgroup=tree.mount))
        self._collector.start()
        self._number = 0
        self.readings: list[Reading] = []
        self.sweep()  # opens every file
        self.sweep()  # is the first with rates

    def sweep(self) -> float:
        tick = Tick(time.time_ns(), self._number * _SWEEP_NS, self._number)
        self._number += 1
        began = time.process_time_ns()
        self.readings = list(self._collector.collect(tick))
        return (time.process_time_ns() - began) / 1e9

    def calls(self) -> Counter[str]:
        return _calls_of(self.sweep)

    def close(self) -> None:
        self._collector.close()


class Naive:
    """What one would write first: pathlib, read_text, a dictionary of each file."""

    def __init__(self, tree: Tree) -> None:
        self._mount = Path(tree.mount)
        self._files = tree.files
        self.found: dict[str, dict[str, dict[str, int | float | str]]] = {}

    def sweep(self) -> float:
        began = time.process_time_ns()
        self.found = {
            str(directory): {file: _fields((directory / file).read_text()) for file in self._files}
            for directory in self._mount.rglob("*")
            if directory.is_dir()
        }
        return (time.process_time_ns() - began) / 1e9

    def calls(self) -> Counter[str]:
        return _calls_of(self.sweep)

    def close(self) -> None:
        self.found.clear()


def _fields(text: str) -> dict[str, int | float | str]:
    fields: dict[str, int | float | str] = {}
    for line in text.splitlines():
        first, *rest = line.split()
        for word in rest:
            if "=" in word:
                key, value = word.split("=")
                fields[f"{first}.{key}"] = _number(value)
            else:
                fields[first] = _number(word)
        if not rest:
            fields[""] = _number(first)
    return fields


def _number(word: str) -> int | float | str:
    if word.isdigit():
        return int(word)
    return word if word == "max" else float(word)


def _calls_of(sweep: Callable[[], float]) -> Counter[str]:
    """Reads as the kernel counts them, the others as the interpreter does."""
    calls: Counter[str] = Counter()

    def count(frame: FrameType, event: str, function: object) -> None:
        name = getattr(function, "__name__", "")
        if event == "c_call" and name in _SYSTEM_CALLS:
            calls[name] += 1

    before = _reads()
    sys.setprofile(count)
    try:
        sweep()
    finally:
        sys.setprofile(None)
    calls["read"] = _reads() - before
    return calls


def _reads() -> int:
    """read(2) and pread(2) of this process so far: proc(5), /proc/PID/io."""
    with open("/proc/self/io", encoding="ascii") as io:
        return next(int(line.split()[1]) for line in io if line.startswith("syscr"))


class Apart:
    """One that takes part, in a process of its own for each tree; its costs are their sum."""

    def __init__(self, name: str, make: Callable[[Tree], Sweeps], trees: Sequence[Tree]) -> None:
        self.name = name
        self._processes = [Process(partial(make, tree)) for tree in trees]

    def sweep(self) -> float:
        """The CPU seconds of one sweep."""
        return float(sum(process.ask("sweep") for process in self._processes))

    def calls(self) -> Counter[str]:
        """The system calls of one sweep."""
        return sum((process.ask("calls") for process in self._processes), Counter())

    def close(self) -> None:
        """End the processes."""
        for process in self._processes:
            process.ask("close")


def contenders(trees: Sequence[Tree]) -> list[Apart]:
    """All of them over the same trees, the floor first and the naive version last."""
    enough = max(len(tree.cgroups) * len(tree.files) for tree in trees)
    return [
        Apart("C floor", Floor, trees),
        Apart("cgotel", partial(Collecting, keep_open_files=enough), trees),
        Apart("cgotel, no descriptor kept", partial(Collecting, keep_open_files=0), trees),
        Apart("cgotel, the slow beat", partial(Collecting, keep_open_files=enough, slow_interval=1), trees),
        Apart("naive pathlib", Naive, trees),
    ]


def processes_needed(cgroups: int, files: int) -> int:
    """How many processes it takes to keep so many cgroups' files open, as RLIMIT_NOFILE has it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY:
        return 1
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    cgroups_a_process = (hard - _SPARE) // 2 // files  # the other half is the directories'
    return math.ceil(cgroups / cgroups_a_process)
