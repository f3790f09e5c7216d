"""Cases from the field, each a file that `cgotel classify` reads, and what the facts support.

Then the same cases with sources taken away, one by one and together: less evidence may make a
verdict less sure, never wrong about memory.
"""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from cgotel.evidence import MemoryEvents
from cgotel.restarts.case import Case, decode
from cgotel.restarts.classify import classify
from cgotel.restarts.verdict import MEMORY_CAUSES

CASES = Path(__file__).parents[2] / "cases" / "restarts"


class Right(NamedTuple):
    cause: str
    sureness: str
    by: str = ""
    limit: str = ""
    missing: tuple[str, ...] = ()


RIGHT = {
    "137-from-stop-timeout": Right("redeployed", "confirmed", by="docker"),
    "137-nothing-known": Right("unknown", "unknown", missing=("kernel_log", "signals", "cgroup_events")),
    "child-killed-main-lives": Right("requested_stop", "confirmed", by="docker"),
    "child-killed-then-graceful-stop": Right("requested_stop", "confirmed", by="runc"),
    "cuda-oom-words-with-empty-gpu": Right("crash", "conflicting"),
    "global-oom-takes-the-database": Right("global_oom", "confirmed", by="kernel"),
    "gpu-full-host-free": Right("gpu_oom", "confirmed"),
    "oom-event-missing-equal-limits": Right(
        "cgroup_oom", "probable", by="kernel", limit="kubepods-burstable-pod0a.slice", missing=("kernel_log",)
    ),
    "oomkilled-init-then-success": Right("completed", "confirmed"),
    "podman-flag-false": Right("cgroup_oom", "confirmed", by="kernel", limit=".scope/container"),
    "probe-killed-in-reclaim": Right("health_check", "confirmed", by="cri"),
    "restart-loop-reservation-check": Right("gpu_oom", "probable"),
    "sibling-ate-the-parent": Right("cgroup_oom", "confirmed", by="kernel", limit="/ai.slice"),
    "unhealthy-but-docker-never-kills": Right("application_error", "confirmed"),
    "userspace-oom-by-pressure": Right("userspace_oom", "confirmed", by="systemd-oomd"),
}


def load(name: str) -> Case:
    return decode((CASES / f"{name}.json").read_bytes())


def test_every_case_has_its_right_verdict_here() -> None:
    assert {path.stem for path in CASES.glob("*.json")} == RIGHT.keys()


@pytest.mark.parametrize("name", RIGHT)
def test_the_verdict_is_what_the_facts_support(name: str) -> None:
    right, verdict = RIGHT[name], classify(load(name))
    assert (verdict.cause, verdict.sureness) == (right.cause, right.sureness)
    assert verdict.by == right.by
    assert (verdict.limit_cgroup or "").endswith(right.limit)
    assert set(right.missing) <= verdict.missing.keys()
    assert verdict.because


def without(case: Case, sources: tuple[str, ...]) -> Case:
    """The case as it would be had these sources been silent."""
    return msgspec.structs.replace(
        case,
        evidence=tuple(e for e in case.evidence if e.source not in sources),
        silent=case.silent | dict.fromkeys(sources, "not permitted"),
    )


@pytest.mark.parametrize("name", RIGHT)
def test_less_evidence_never_makes_a_wrong_memory_verdict(name: str) -> None:
    case, right = load(name), RIGHT[name]
    sources = sorted({e.source for e in case.evidence})
    for count in range(1, len(sources) + 1):
        for silenced in combinations(sources, count):
            verdict = classify(without(case, silenced))
            if verdict.cause in MEMORY_CAUSES:
                assert verdict.cause == right.cause, silenced
            if verdict.sureness == "confirmed":
                assert verdict.cause not in MEMORY_CAUSES or {"kernel_log", "signals"} - set(silenced), (
                    silenced
                )


@pytest.mark.parametrize("name", RIGHT)
def test_the_order_in_which_evidence_came_does_not_matter(name: str) -> None:
    case = load(name)
    turned = msgspec.structs.replace(case, evidence=tuple(reversed(case.evidence)))
    assert classify(turned) == classify(case)


def test_what_no_source_saw_is_named() -> None:
    case = load("podman-flag-false")
    verdict = classify(without(case, ("kernel_log",)))
    assert (verdict.cause, verdict.sureness) == ("unknown", "unknown")
    assert verdict.missing == {"kernel_log": "not permitted"}


def test_a_neighbour_at_its_own_limit_is_no_limit_of_the_parent() -> None:
    """The parent's hierarchical counter rises for it as well; only the local one tells whose limit it was."""
    case = load("oom-event-missing-equal-limits")
    hierarchical = tuple(
        msgspec.structs.replace(e, local=False) if isinstance(e, MemoryEvents) else e for e in case.evidence
    )
    assert classify(case).cause == "cgroup_oom"
    assert classify(msgspec.structs.replace(case, evidence=hierarchical)).cause != "cgroup_oom"
