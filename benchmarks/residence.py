"""Resident memory of an agent that sweeps and encodes: does it grow?"""

from __future__ import annotations

import os
import time
from functools import partial

from processes import Process
from rounds import table
from trees import Tree, move

from cgotel.agent import Agent
from cgotel.clock import Instant
from cgotel.collectors.cgroup import CgroupCollector, CgroupConfig
from cgotel.contract import Output, Settings
from cgotel.kernel.roots import Roots
from cgotel.model import Sweep
from cgotel.outputs.otlp.encode import Encoder
from cgotel.outputs.otlp.resources import Resources
from cgotel.sweeper import Sweeper

_LIMIT = 3 * 1024 * 1024
_MARKS = (1, 10, 100)
_MOST_SERIES = 1_000_000


def residence(tree: Tree) -> None:
    """Print the resident memory after 1, 10 and 100 sweeps."""
    agent = Process(partial(_Sweeping, tree))
    resident: dict[int, float] = {}
    for number in range(1, max(_MARKS) + 1):
        move([tree], number)
        agent.ask("sweep")
        if number in _MARKS:
            resident[number] = agent.ask("resident") / 2**20
    agent.ask("close")
    grown = resident[100] - resident[10]
    lines = [[str(number), f"{mib:.2f} MiB"] for number, mib in resident.items()]
    print(
        table(f"agent with {len(tree.cgroups)} cgroups, all changed each time", ("sweeps", "resident"), lines)
    )
    print(f"from 10 to 100 sweeps: {grown:+.2f} MiB\n")


class _Encoding(Output):
    """Encodes and sends nowhere."""

    name = "encoding"

    def __init__(self) -> None:
        super().__init__(Settings())
        self._encoder = Encoder(Resources({}, {}), "benchmark", _LIMIT)

    def write(self, sweep: Sweep) -> None:
        for _ in self._encoder.encode(sweep):
            pass


class _Sweeping:
    """The real agent, told when to sweep; every sweep is ten seconds after the last."""

    def __init__(self, tree: Tree) -> None:
        collector = CgroupCollector(CgroupConfig(), Roots(cgroup=tree.mount))
        self._monotonic_ns = 0
        self._agent = Agent(Sweeper([collector], _MOST_SERIES), [_Encoding()], 10, self._now)

    def sweep(self) -> None:
        self._agent.sweep()

    def resident(self) -> int:
        with open("/proc/self/statm", encoding="ascii") as statm:
            pages = int(statm.read().split()[1])
        return pages * os.sysconf("SC_PAGESIZE")

    def close(self) -> None:
        self._agent.close()

    def _now(self) -> Instant:
        self._monotonic_ns += 10 * 10**9
        return Instant(time.time_ns(), self._monotonic_ns)
