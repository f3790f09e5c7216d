"""An installed plugin of cgotel whose collector reads a pipe as a file that may block for ever."""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "STUCK_PIPE"

_MODULE = f'''
import os

from cgotel.contract import Collector
from cgotel.hookspecs import hookimpl


class Stuck(Collector):
    name = "stuck"

    def collect(self, tick):
        if os.path.exists(pipe := os.environ["{VARIABLE}"]):
            os.close(os.open(pipe, os.O_RDONLY))
        return ()


@hookimpl
def cgotel_collectors():
    return [Stuck]
'''


class StuckPlugin:
    """``folder`` is where Python finds it; sweeps block from `block` to `release`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._pipe = folder / "pipe"
        info = folder / "cgotel_stuck-1.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: cgotel-stuck\nVersion: 1\n")
        (info / "entry_points.txt").write_text("[cgotel]\nstuck = cgotel_stuck\n")
        (folder / "cgotel_stuck.py").write_text(_MODULE)

    @property
    def environment(self) -> dict[str, str]:
        """The variable that leads the collector to its pipe."""
        return {VARIABLE: str(self._pipe)}

    def block(self) -> None:
        """From the next sweep on, the collector waits for a writer."""
        os.mkfifo(self._pipe)

    def release(self) -> None:
        """Be that writer, and take the pipe away."""
        writer = os.open(self._pipe, os.O_WRONLY)
        self._pipe.unlink()
        os.close(writer)
