"""Trees of cgroups to read: recorded ones on tmpfs, and real ones below the machine's v2 mount."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import recorded

from cgotel.kernel.roots import Roots

_CORE = ("cgroup.events", "cgroup.procs", "cgroup.stat", "cgroup.stat.local", "cpu.stat", "cpu.stat.local")
_PRESSURE = ("cpu.pressure", "io.pressure", "irq.pressure", "memory.pressure")
_SLICE_OF = 50


@dataclass(frozen=True, slots=True)
class Tree:
    """``mount`` plays the cgroup v2 mount; every directory of ``cgroups`` below it has all ``files``."""

    mount: str
    cgroups: tuple[str, ...]
    files: tuple[str, ...]


@contextlib.contextmanager
def recorded_trees(cgroups: int, trees: int) -> Iterator[list[Tree]]:
    """So many cgroups of recorded contents on tmpfs: slices with up to 49 containers each."""
    top = tempfile.mkdtemp(prefix="cgotel-benchmark-", dir="/dev/shm")
    try:
        plan = _plan(top, cgroups, trees)
        for mount, paths in plan.items():
            os.mkdir(mount)
            for index, path in enumerate(paths):
                os.mkdir(path)
                over = recorded.SLICE if path.endswith(".slice") else {}
                _write(path, recorded.contents(index, over))
        yield [Tree(mount, tuple(paths), recorded.FILES) for mount, paths in plan.items()]
    finally:
        shutil.rmtree(top)


def move(trees: Sequence[Tree], round_number: int) -> None:
    """Rewrite what changes in life. In place: descriptors that readers keep stay good."""
    for tree in trees:
        for index, cgroup in enumerate(tree.cgroups):
            _write(cgroup, recorded.moved(index, round_number))


@contextlib.contextmanager
def real_trees(cgroups: int, trees: int) -> Iterator[list[Tree]]:
    """So many cgroups that the kernel serves, in the same shape. Raises OSError without the right to.

    They are empty, so that their counters stand still; the kernel formats them anew for each read.
    """
    mount = Roots.discover().cgroup
    if mount is None:
        raise FileNotFoundError("no cgroup v2 mount")
    top = f"{mount}/cgotel-benchmark-{os.getpid()}"
    made: list[str] = []
    try:
        plan = _plan(top, cgroups, trees)
        for path in (top, *(path for tree, paths in plan.items() for path in (tree, *paths))):
            os.mkdir(path)
            made.append(path)
        files = tuple(file for file in sorted(_CORE + _PRESSURE) if _readable(f"{made[-1]}/{file}"))
        yield [Tree(tree, tuple(paths), files) for tree, paths in plan.items()]
    finally:
        for path in reversed(made):
            Path(path).rmdir()


def standing_tree(mount: str) -> Tree:
    """Cgroups that stand below ``mount`` already: the files that recorded ones have, where all have them."""
    paths = sorted(str(path) for path in Path(mount).rglob("*") if path.is_dir())
    there = [file for file in recorded.FILES if all(os.path.exists(f"{path}/{file}") for path in paths)]
    return Tree(mount, tuple(paths), tuple(file for file in there if _said(f"{paths[-1]}/{file}")))


def _plan(top: str, cgroups: int, trees: int) -> dict[str, list[str]]:
    """The paths of each tree's cgroups, parents first."""
    sizes = [cgroups // trees + (index < cgroups % trees) for index in range(trees)]
    return {f"{top}/{index}": list(_paths(f"{top}/{index}", size)) for index, size in enumerate(sizes)}


def _paths(mount: str, cgroups: int) -> Iterator[str]:
    for index in range(cgroups):
        if index % _SLICE_OF == 0:
            parent = f"{mount}/workload-{index // _SLICE_OF}.slice"
            yield parent
        else:
            name = hashlib.sha256(f"{mount}/{index}".encode()).hexdigest()
            yield f"{parent}/docker-{name}.scope"


def _write(cgroup: str, contents: dict[str, str]) -> None:
    for file, text in contents.items():
        with open(f"{cgroup}/{file}", "w", encoding="ascii") as out:
            out.write(text)


def _readable(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            file.read()
            return True
    except OSError:
        return False


def _said(path: str) -> bool:
    """Whether a file has something to read: an empty io.stat is what the native plugin refuses."""
    try:
        with open(path, "rb") as file:
            return bool(file.read())
    except OSError:
        return False
