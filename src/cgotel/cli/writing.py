"""Where a command's answer goes: standard output, or a file that is never seen half written."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from pathlib import Path
from typing import NoReturn

from cgotel.cli.common import tell

FAILURE_STATUS = 1

STANDARD_OUTPUT = "-"


def write(data: bytes, output: str = STANDARD_OUTPUT) -> None:
    """Write an answer. What fails is one line on standard error and exit status 1; a closed pipe none."""
    try:
        if not output:
            fail("--output needs the name of a file")
        if output == STANDARD_OUTPUT:
            _write_all(sys.stdout.fileno(), data)
        else:
            _replace(output, data)
    except BrokenPipeError:
        sys.exit(FAILURE_STATUS)
    except OSError as error:
        where = "standard output" if output == STANDARD_OUTPUT else output
        fail(f"{where}: {error.strerror}")


def fail(message: str) -> NoReturn:
    """One line on standard error, and exit status 1."""
    tell(message)
    sys.exit(FAILURE_STATUS)


def _replace(path: str, data: bytes) -> None:
    """Write beside the file and rename: a reader has the old content or the new, never a part.

    The name of the new file begins with a dot and ends in no suffix that a reader of the directory
    would pick up. What is no regular file (/dev/null, a pipe) is written to as it is.
    """
    try:
        mode = os.stat(path).st_mode  # before the links are followed: /dev/stdout leads to no name
    except FileNotFoundError:
        mode = None
    if mode is not None and not stat.S_ISREG(mode):
        _write_to(os.open(path, os.O_WRONLY | os.O_CLOEXEC), data)
        return
    path = os.path.realpath(path)
    folder, name = os.path.split(path)
    new = os.path.join(folder, f".{name}.{os.getpid()}.new")
    try:
        fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        _write_to(fd, data, durable=True, mode=mode)
        Path(new).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(new)
        raise


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
