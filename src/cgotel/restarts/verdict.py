"""What a verdict holds."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

Cause: TypeAlias = Literal[
    "completed",
    "requested_stop",
    "redeployed",
    "application_error",
    "crash",
    "cgroup_oom",
    "global_oom",
    "userspace_oom",
    "gpu_oom",
    "gpu_fault",
    "health_check",
    "watchdog",
    "pids_limit",
    "killed_externally",
    "start_failure",
    "host_shutdown",
    "unknown",
]

Sureness: TypeAlias = Literal["confirmed", "probable", "conflicting", "unknown"]
"""Confirmed: independent witnesses agree, none contradicts. Probable: one spoke, the others were
silent. Conflicting: they contradict each other. Unknown: nobody saw what matters."""

MEMORY_CAUSES: frozenset[Cause] = frozenset(("cgroup_oom", "global_oom", "userspace_oom"))


class Finding(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that was seen, in words; ``witness`` is who saw it, ``time_ns`` when it happened."""

    text: str
    witness: str
    time_ns: int


class Verdict(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why one run ended.

    ``supporting`` and ``against`` are what was seen; ``missing`` the sources whose word would have
    mattered, each with why it was not heard; ``by`` who ended it; ``limit_cgroup`` whose limit it
    was; ``contributing`` what made it worse; ``excluded`` causes that the evidence rules out.
    """

    cause: Cause
    sureness: Sureness
    because: str
    supporting: tuple[Finding, ...] = ()
    against: tuple[Finding, ...] = ()
    missing: dict[str, str] = {}
    by: str = ""
    limit_cgroup: str | None = None
    contributing: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    advice: str = ""
