"""Where memory can go when it runs short."""

from __future__ import annotations

from collections.abc import Iterator

from cgotel.doctor.facts import Facts
from cgotel.doctor.finding import Finding, Level
from cgotel.outputs.figures import size

CHECK = "swap"


def check(facts: Facts) -> Iterator[Finding]:
    """No swap at all, or which."""
    if facts.swaps is None:
        return
    if facts.swaps:
        areas = ", ".join(f"{path} {size(swap.size)}" for path, swap in facts.swaps.items())
        yield Finding(CHECK, Level.OK, f"swap: {areas}")
        return
    idle = f" ({', '.join(facts.zram)} is there, and not in use)" if facts.zram else ""
    yield Finding(
        CHECK,
        Level.NOTE,
        f"no swap and no zram{idle}: a cgroup at memory.max is killed, where with swap it slows down",
        "a swap file, or zram by systemd-zram-generator",
    )
