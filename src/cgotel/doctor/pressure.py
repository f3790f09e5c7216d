"""Whether pressure stall information is on (accounting/psi.rst)."""

from __future__ import annotations

from collections.abc import Iterator

from cgotel.contract import State
from cgotel.doctor.facts import Facts
from cgotel.doctor.finding import Finding, Level

CHECK = "pressure"


def check(facts: Facts) -> Iterator[Finding]:
    """Off for all, or off for some cgroups (cgroup.pressure, Linux 6.1)."""
    if facts.pressure is not State.OK:
        yield _off(facts)
        return
    off = tuple(cgroup.path for cgroup in facts.cgroups if cgroup.pressure is False)
    if off:
        yield Finding(
            CHECK,
            Level.LOST,
            f"PSI is switched off for {'one cgroup' if len(off) == 1 else f'{len(off)} cgroups'}",
            "write 1 to cgroup.pressure there",
            off,
        )
    else:
        yield Finding(CHECK, Level.OK, "PSI is on")


def _off(facts: Facts) -> Finding:
    if facts.pressure is State.DENIED:
        return Finding(CHECK, Level.LOST, "PSI may not be read", "run as root, or unmask /proc/pressure")
    if "psi=0" in facts.cmdline:
        return Finding(
            CHECK, Level.LOST, "PSI is switched off by psi=0", "take psi=0 off the kernel command line"
        )
    return Finding(
        CHECK,
        Level.LOST,
        "PSI is off, or not built into this kernel",
        "boot with psi=1 (CONFIG_PSI, Linux 4.20)",
    )
