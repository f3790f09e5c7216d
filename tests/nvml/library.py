"""Builds the library that stands in for the driver's, and writes the state that it answers from."""

from __future__ import annotations

import atexit
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).with_name("fake_nvml.c")

MIB = 1 << 20
GIB = 1 << 30


@cache
def built() -> Path:
    """The library, compiled once a run with a compiler from tests/nvml/packages.txt."""
    if shutil.which("gcc") is None:
        raise FileNotFoundError("gcc is missing: apt-get install what tests/nvml/packages.txt names")
    directory = Path(tempfile.mkdtemp(prefix="cgotel-nvml-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    library = directory / "libnvidia-ml.so.1"
    options = ["-std=gnu11", "-O1", "-fPIC", "-shared", "-pthread", f"-Wl,-soname,{library.name}"]
    subprocess.run(["gcc", *options, "-o", str(library), str(SOURCE)], check=True)
    return library


def gpu(number: int, **more: object) -> dict[str, object]:
    """A GPU with what every one has; ``more`` by the keys of fake_nvml.c, with `__` for a dot."""
    plain = {
        "uuid": f"GPU-{number}",
        "name": "NVIDIA H200",
        "bdf": f"00000000:{0x3B + number:02X}:00.0",
        "mem_total": 100 * GIB,
        "mem_used": 10 * GIB,
        "mem_reserved": GIB,
        "temp0": 41,
        **more,
    }
    return {f"{number}.{key.replace('__', '.')}": value for key, value in plain.items() if value is not None}


class State:
    """The file that the library reads: a new one takes the old one's place at once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lines: list[str] = []

    def set(self, *parts: dict[str, object], **plain: object) -> None:
        """Keys and values; a key may come several times, with a list of values."""
        for part in (*parts, plain):
            for key, value in part.items():
                values = value if isinstance(value, list) else [value]
                self._lines = [line for line in self._lines if not line.startswith(f"{key}=")]
                self._lines += [f"{key}={one}" for one in values]
        self._write()

    def add(self, line: str) -> None:
        """One line more: an event."""
        self._lines.append(line)
        self._write()

    def drop(self, key: str) -> None:
        """Take a key away."""
        self._lines = [line for line in self._lines if not line.startswith(f"{key}=")]
        self._write()

    def _write(self) -> None:
        new = self.path.with_suffix(".new")
        new.write_text("".join(f"{line}\n" for line in self._lines))
        new.replace(self.path)
