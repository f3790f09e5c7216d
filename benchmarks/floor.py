"""Drives floor.c: compiled anew for each run, and told to sweep by a line on its standard input."""

from __future__ import annotations

import subprocess
import tempfile
from collections import Counter
from pathlib import Path

from trees import Tree


class Floor:
    """The C program over a tree. Raises CalledProcessError where cc fails, RuntimeError where it ends."""

    def __init__(self, tree: Tree) -> None:
        with tempfile.TemporaryDirectory() as directory:
            program = f"{directory}/floor"
            source = Path(__file__).with_name("floor.c")
            subprocess.run(["cc", "-O2", "-o", program, source], check=True)
            self._process = subprocess.Popen(
                [program, *tree.files], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            self._say("".join(f"{cgroup}\n" for cgroup in tree.cgroups))
            self.reads = self.numbers = self.sum = 0
            self.sweep()  # once it answers it runs, and its file may go

    def sweep(self) -> float:
        """The CPU seconds of one sweep."""
        self._say("")
        assert self._process.stdout is not None
        answer = self._process.stdout.readline().split()
        if len(answer) != 4:
            raise RuntimeError("floor.c has ended: see its message above")
        cpu_ns, self.reads, self.numbers, self.sum = map(int, answer)
        return cpu_ns / 1e9

    def calls(self) -> Counter[str]:
        """It makes no other calls than its reads."""
        return Counter(read=self.reads)

    def close(self) -> None:
        """End the program."""
        self._process.communicate()

    def _say(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
