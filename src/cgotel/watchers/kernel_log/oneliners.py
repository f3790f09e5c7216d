"""Lines that say all there is to say: refused forks, faults, hung tasks, sleep and waking."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from cgotel.evidence import Evidence, Fault, ForkRejected, HostState, HungTask
from cgotel.watchers.kernel_log.line import NAME, Line

WOKE = "PM: suspend exit"
"""kernel/power/suspend.c: the machine has run without a break since this line."""

_LONGEST_WHAT = 200
_LONGEST_PATH = 900  # printk cuts a piece short at a little more

_FORK = re.compile(r"cgroup: fork rejected by pids controller in (/.*)", re.DOTALL)
_HUNG = re.compile(
    r"INFO: task (.{0,15}):(\d+) blocked(?: in I/O wait)? for more than (\d+) seconds\.", re.DOTALL
)
# arch/x86/mm/fault.c, arch/x86/kernel/traps.c, arch/arm64/kernel/traps.c
_FAULT = re.compile(
    r"(?:traps: )?(.{0,15})\[(\d+)\]:? ((?:segfault at |trap |general protection|bad frame |unhandled ).*)",
    re.DOTALL,
)
_STATES = {
    "PM: suspend entry": "suspend",
    WOKE: "resume",
    "PM: hibernation: hibernation entry": "suspend",
    "PM: hibernation: hibernation exit": "resume",
}


def read(line: Line) -> Iterator[Evidence]:
    """What one line says, if it is one of these."""
    for reader in _READERS:
        if (evidence := reader(line)) is not None:
            yield evidence
            return


def _fork_rejected(line: Line) -> Evidence | None:
    """``cgroup: fork rejected by pids controller in /A`` (kernel/cgroup/pids.c)."""
    found = _FORK.fullmatch(line.text)
    if found is None:
        return None
    whole = len(found[1].encode()) < _LONGEST_PATH
    return ForkRejected(
        source=NAME,
        time_ns=line.time_ns,
        uncertainty_ns=line.uncertainty_ns,
        cgroup=found[1] if whole else None,
    )


def _fault(line: Line) -> Evidence | None:
    """``T[P]: segfault at 0 ip … sp … error 4 in lib[…]``, ``traps: T[P] trap invalid opcode ip:…``."""
    found = _FAULT.fullmatch(line.text)
    if found is None:
        return None
    return Fault(
        source=NAME, time_ns=line.time_ns, uncertainty_ns=line.uncertainty_ns,
        pid=int(found[2]), comm=found[1], what=found[3][:_LONGEST_WHAT],
    )  # fmt: skip


def _hung_task(line: Line) -> Evidence | None:
    """``INFO: task T:P blocked for more than 120 seconds.`` (kernel/hung_task.c)."""
    found = _HUNG.fullmatch(line.text)
    if found is None:
        return None
    return HungTask(
        source=NAME, time_ns=line.time_ns, uncertainty_ns=line.uncertainty_ns,
        pid=int(found[2]), comm=found[1], seconds=int(found[3]),
    )  # fmt: skip


def _host_state(line: Line) -> Evidence | None:
    """``PM: suspend entry (deep)``, ``PM: suspend exit`` (kernel/power/suspend.c, hibernate.c)."""
    words = line.text.partition(" (")[0]
    if (state := _STATES.get(words)) is None:
        return None
    return HostState(
        source=NAME,
        time_ns=line.time_ns,
        uncertainty_ns=line.uncertainty_ns,
        state="suspend" if state == "suspend" else "resume",
    )


_READERS: tuple[Callable[[Line], Evidence | None], ...] = (_fork_rejected, _fault, _hung_task, _host_state)
