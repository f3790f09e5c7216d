"""All failures, and where each can happen."""

from __future__ import annotations

from typing import TypeAlias

from tests.lab.guest.failures import host, memory, probes, programs, requests
from tests.lab.guest.failures.model import Failure

FAILURES = (
    memory.oom_at_own_limit,
    memory.oom_at_parents_limit,
    memory.oom_of_a_child,
    memory.oom_of_a_child_stops_the_unit,
    memory.oom_of_the_group,
    memory.killed_by_oomd,
    requests.stop_with_handler,
    requests.stop_without_handler,
    requests.kill_by_supervisor,
    requests.kill_from_outside,
    requests.kill_from_inside,
    requests.redeploy,
    programs.exit_0,
    programs.restarts_by_policy,
    programs.segfault,
    programs.abort,
    programs.fork_bomb,
    programs.missing_program,
    programs.not_a_program,
    probes.unhealthy_alone,
    probes.unhealthy_and_healed,
    probes.unhealthy_and_killed,
    probes.slowed_until_unhealthy,
    probes.watchdog,
    host.global_oom,
    host.killed_by_earlyoom,
)

Cell: TypeAlias = tuple[Failure, str]

CELLS: tuple[Cell, ...] = tuple((failure, name) for failure in FAILURES for name in failure.on)


def cell_id(cell: Cell) -> str:
    """``oom_at_own_limit-docker``."""
    failure, supervisor = cell
    return f"{failure.name}-{supervisor}"
