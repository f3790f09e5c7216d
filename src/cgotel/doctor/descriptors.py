"""Whether enough files may be open at once (RLIMIT_NOFILE)."""

from __future__ import annotations

from collections.abc import Iterator

from cgotel.doctor.facts import Facts
from cgotel.doctor.finding import Finding, Level

CHECK = "descriptors"

_SPARE = 64  # as the collectors leave to sockets, logs and libraries


def check(facts: Facts) -> Iterator[Finding]:
    """One descriptor a cgroup is needed; files that are kept open besides save work."""
    wanted = facts.descriptors
    needed = wanted.cgroups + _SPARE
    if wanted.limit is None or needed + wanted.files <= wanted.limit:
        allowed = "any number" if wanted.limit is None else f"{wanted.limit:,}"
        yield Finding(CHECK, Level.OK, f"{needed + wanted.files:,} open files wanted, {allowed} allowed")
        return
    text = f"{needed + wanted.files:,} open files wanted, {wanted.limit:,} allowed"
    remedy = f"LimitNOFILE={needed + wanted.files} in the agent's unit (ulimit -Hn)"
    if needed > wanted.limit:
        yield Finding(CHECK, Level.LOST, f"{text}: not every cgroup can be read", remedy)
    else:
        yield Finding(
            CHECK, Level.NOTE, f"{text}: the rest is opened at each sweep, for more CPU time", remedy
        )
