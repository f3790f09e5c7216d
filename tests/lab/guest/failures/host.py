"""The whole machine is short of memory."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.lab.guest.failures.memory import hog, set_badness
from tests.lab.guest.failures.model import Caused, failure
from tests.lab.guest.supervisors.model import Program, Supervisor

_GATE = 'read x < "$GATE"'
_HUGE_PAGES = Path("/proc/sys/vm/nr_hugepages")
_SPARE_MIB = 192
_EARLYOOM = Path("/etc/default/earlyoom")


@failure("global_oom", alone=True)
def global_oom(supervisor: Supervisor, name: str) -> Caused:
    """Nobody has a limit, and the machine has not enough."""
    workload = supervisor.run(name, Program(f"{_GATE}; exec {hog('${x}')}"))
    set_badness(workload, 1000)
    with _scarce_memory() as left_mib:
        supervisor.open_gate(workload, f"{left_mib + 512}")
        end = supervisor.wait(workload)
    return Caused(workload, end)


@failure("userspace_oom", or_else=("killed_externally",), alone=True)
def killed_by_earlyoom(supervisor: Supervisor, name: str) -> Caused:
    """earlyoom ends the worst one as soon as less is available than it was told to keep."""
    workload = supervisor.run(name, Program(f"{_GATE}; exec {hog(320, 1_000_000)}"))
    set_badness(workload, 1000)
    keep_kib = (_meminfo("MemAvailable") - 160) << 10
    _EARLYOOM.write_text(f'EARLYOOM_ARGS="-r 0 -s 100,100 -M {keep_kib},{keep_kib}"\n')
    subprocess.run(["systemctl", "start", "earlyoom.service"], check=True)
    try:
        supervisor.open_gate(workload)
        return Caused(workload, supervisor.wait(workload), by="earlyoom")
    except TimeoutError as error:
        said = subprocess.run(
            ["journalctl", "-u", "earlyoom", "-n", "30"], capture_output=True, text=True, check=False
        )
        raise TimeoutError(f"{error}; earlyoom said: {said.stdout}") from error
    finally:
        subprocess.run(["systemctl", "stop", "earlyoom.service"], check=True)


@contextmanager
def _scarce_memory() -> Iterator[int]:
    """No swap, and all but a little of the memory set aside as huge pages, which takes no time.

    Gives what is left in MiB. This process and its children are out of the killer's reach.
    """
    own = Path("/proc/self/oom_score_adj")
    before = own.read_text()
    own.write_text("-1000")
    subprocess.run(["swapoff", "-a"], check=True)
    try:
        Path("/proc/sys/vm/drop_caches").write_text("1")
        _HUGE_PAGES.write_text(f"{(_meminfo('MemFree') - _SPARE_MIB) // 2}")
        yield _meminfo("MemAvailable")
    finally:
        _HUGE_PAGES.write_text("0")
        subprocess.run(["swapon", "-a"], check=True)
        own.write_text(before)


def _meminfo(key: str) -> int:
    lines = Path("/proc/meminfo").read_text().splitlines()
    [line] = [line for line in lines if line.startswith(f"{key}:")]
    return int(line.split()[1]) >> 10
