"""What takes long is made once: an entry is named by the hash of all that it is made from."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.lab.host import ROOT


def folder(part: str = "lab") -> Path:
    """``.cache/lab`` of the repository, or ``lab`` below ``CGOTEL_CACHE``; so for any other part."""
    path = Path(os.environ.get("CGOTEL_CACHE") or ROOT / ".cache").absolute() / part
    path.mkdir(parents=True, exist_ok=True)
    return path


def digest(*inputs: str | Path) -> str:
    """One hash over texts and files; a folder counts with the place and content of each file."""
    total = hashlib.sha256()
    for item in inputs:
        for name, content in _contents(item):
            total.update(f"{name}\0{len(content)}\0".encode() + content)
    return total.hexdigest()[:12]


def _contents(item: str | Path) -> Iterator[tuple[str, bytes]]:
    if isinstance(item, str):
        yield "", item.encode()
    elif item.is_file():
        yield item.name, item.read_bytes()
    else:
        for path in sorted(path for path in item.rglob("*") if path.is_file()):
            yield str(path.relative_to(item)), path.read_bytes()


def entry(name: str, key: str, build: Callable[[Path], object], part: str = "lab") -> Path:
    """The file or folder ``name-key``, made by ``build(path)`` where it is not there yet.

    It is built aside and moved into place when complete, so an entry that exists is whole; what was
    made from older inputs, or left by a build that was killed, is removed.
    """
    home = folder(part)
    wanted = home / f"{name}-{key}"
    with _lock(home / f".{name}.lock"):
        if not wanted.exists():
            for leftover in (*home.glob(f"{name}-*"), *home.glob(f"{name}.*")):
                _remove(leftover)
            with tempfile.TemporaryDirectory(prefix=f"{name}.", dir=home) as scratch:
                build(Path(scratch, name))
                Path(scratch, name).rename(wanted)
    return wanted


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    with open(path, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
