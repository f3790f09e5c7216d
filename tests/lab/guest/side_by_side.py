"""What Telegraf's own plugin and cgotel cost on cgroups with every controller: benchmarks/side_by_side.py.

    CGOTEL_LAB_KERNELS=6.12 python -m pytest tests/lab/guest/side_by_side.py -rP

prints the table of docs/telegraf.md in some minutes. Its name keeps it out of the suite.
"""

from __future__ import annotations

import subprocess
import sys

import pytest
from tests.lab.guest.cgroups import Cgroup
from tests.lab.host import ROOT
from tests.lab.project import TELEGRAF

SLICE_OF = 50


def populated(cgroup: Cgroup, number: int) -> list[subprocess.Popen[bytes]]:
    """So many cgroups in slices of fifty, a process with a memory limit in each; the processes."""
    sleepers = []
    for first in range(0, number, SLICE_OF):
        outer = cgroup.child(f"workload-{first}.slice", memory_max="1G", cpu_max="150000 100000")
        for each in range(first + 1, min(first + SLICE_OF, number)):
            inner = outer.child(f"docker-{each:064x}.scope", memory_max="64M", pids_max=64)
            sleepers.append(subprocess.Popen(["sleep", "infinity"]))
            inner.write("cgroup.procs", sleepers[-1].pid)
    return sleepers


@pytest.mark.timeout(800)
@pytest.mark.parametrize(("number", "sweeps"), [(100, 8), (1000, 2)])
def test_side_by_side(cgroup: Cgroup, number: int, sweeps: int) -> None:
    sleepers = populated(cgroup, number)
    options = ("--sweeps", sweeps, "--warm-up", 1, "--below", cgroup.path, "--telegraf", TELEGRAF)
    command = [sys.executable, "benchmarks/side_by_side.py", *map(str, options)]
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    print(done.stdout)
    cgroup.kill()
    for sleeper in sleepers:
        sleeper.wait()
    assert done.returncode == 0, done.stderr
