"""Where a command's answer goes: standard output, or a file that is never seen half written."""

from __future__ import annotations

import contextlib
import os
import re
import stat
import sys
import time
from pathlib import Path
from typing import NoReturn

from cgotel.cli.common import tell
from cgotel.cli.streams import given_back
from cgotel.outputs.text import encodable

FAILURE_STATUS = 1

STANDARD_OUTPUT = "-"

_SUFFIX = ".cgotel-new"
_RANDOM_BYTES = 8
_NAME_BYTES = 200  # of 255 that a file's name may have (NAME_MAX, limits.h)
_STALE_S = 3600


def write(data: bytes, output: str = STANDARD_OUTPUT, claimed: int | None = None) -> None:
    """Write an answer. What fails is one line on standard error and exit status 1; a closed pipe none.

    ``claimed`` is the descriptor that `claim_standard_output` gave, if it was called.
    """
    try:
        with given_back(claimed):
            if output == STANDARD_OUTPUT:
                sys.stdout.flush()
                _write_all(sys.stdout.fileno(), data)
            else:
                _replace(output, data)
    except BrokenPipeError:
        sys.exit(FAILURE_STATUS)
    except OSError as error:
        where = "standard output" if output == STANDARD_OUTPUT else output
        fail(f"{where}: {error.strerror}")


def write_text(text: str, output: str = STANDARD_OUTPUT) -> None:
    """`write` for people, in the encoding of the terminal, with stand-ins for what it cannot show."""
    encoding = sys.stdout.encoding if output == STANDARD_OUTPUT else "utf-8"
    write(encodable(text, encoding).encode(encoding), output)


def fail(message: str) -> NoReturn:
    """One line on standard error, and exit status 1."""
    tell(message)
    sys.exit(FAILURE_STATUS)


def _replace(path: str, data: bytes) -> None:
    """Write beside the file and rename: a reader has the old content or the new, never a part.

    What is no regular file (/dev/null, a pipe) is written to as it is.
    """
    try:
        mode = os.stat(path).st_mode  # before the links are followed: /dev/stdout leads to no name
    except FileNotFoundError:
        mode = None
    if mode is not None and not stat.S_ISREG(mode):
        _write_to(os.open(path, os.O_WRONLY | os.O_CLOEXEC), data)
        return
    path = os.path.realpath(path)
    _remove_stale(path)
    new = _beside(path, os.urandom(_RANDOM_BYTES).hex())
    fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        _write_to(fd, data, durable=True, mode=mode)
        Path(new).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(new)
        raise


def _beside(path: str, random: str) -> str:
    """The name of a new file: it begins with a dot, and no reader of the directory picks up its suffix."""
    folder, name = os.path.split(path)
    cut = os.fsdecode(os.fsencode(name)[:_NAME_BYTES])
    return os.path.join(folder, f".{cut}.{random}{_SUFFIX}")


def _remove_stale(path: str) -> None:
    """Take away what a command left that was killed while it wrote the same file."""
    folder, name = os.path.split(_beside(path, "\0"))
    ours = re.compile(re.escape(name).replace("\0", f"[0-9a-f]{{{2 * _RANDOM_BYTES}}}"), re.DOTALL)
    before = time.time() - _STALE_S
    with contextlib.suppress(OSError), os.scandir(folder) as found:
        for entry in found:
            if ours.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                _remove_if_older(entry, before)


def _remove_if_older(entry: os.DirEntry[str], before: float) -> None:
    with contextlib.suppress(OSError):
        if entry.stat(follow_symlinks=False).st_mtime < before:
            os.unlink(entry.path)


def _write_to(fd: int, data: bytes, durable: bool = False, mode: int | None = None) -> None:
    try:
        if mode is not None:
            os.fchmod(fd, stat.S_IMODE(mode))
        _write_all(fd, data)
        if durable:
            os.fsync(fd)
    finally:
        os.close(fd)


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
