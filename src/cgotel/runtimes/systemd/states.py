"""What systemd says of one unit at one instant, read from D-Bus properties (org.freedesktop.systemd1(5))."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cgotel.identity import containers

UNITS = "/org/freedesktop/systemd1/unit/"

_LABEL = re.compile(rb"_([0-9a-f]{2})")
_AT_REST = frozenset({"inactive", "failed"})
_BETWEEN_RUNS = re.compile(
    r"auto-restart(?:-queued)?|(?:dead|failed)-before-auto-restart"
)  # the latter since v254
_NOT_A_WORKLOAD = re.compile(r"init\.scope|session-.*\.scope|.*conmon.*\.scope")

EXITED, KILLED, DUMPED = 1, 2, 3  # CLD_* of waitid(2)


@dataclass(frozen=True, slots=True)
class UnitState:
    """The properties that tell runs apart and how they end. Stamps are CLOCK_MONOTONIC in microseconds.

    ``main_pid`` is 0 while no main process lives; ``last_pid`` is the latest one, alive or not, and
    ``began_us``, ``ended_us``, ``code`` (CLD_*) and ``status`` are about it. 0 means that systemd has none.
    """

    name: str
    invocation: str = ""
    active: str = ""
    sub: str = ""
    result: str = "success"
    main_pid: int = 0
    last_pid: int = 0
    began_us: int = 0
    ended_us: int = 0
    code: int = 0
    status: int = 0
    restarts: int | None = None
    active_us: int = 0
    inactive_us: int = 0

    @property
    def at_rest(self) -> bool:
        """Nothing of it runs any more: it is dead, failed, or waits for its next run."""
        return self.active in _AT_REST or self.sub == "exited" or self.restarting

    @property
    def restarting(self) -> bool:
        """It waits for ``RestartSec`` to be over."""
        return _BETWEEN_RUNS.fullmatch(self.sub) is not None

    @property
    def running(self) -> bool:
        """It is up, whether or not its main process is known."""
        return self.active == "active" and self.sub in ("running", "abandoned")


def read_state(name: str, values: Mapping[str, Any]) -> UnitState:
    """A unit's state from all properties of it that are known."""
    return UnitState(
        name,
        invocation=bytes(values.get("InvocationID") or b"").hex(),
        active=str(values.get("ActiveState") or ""),
        sub=str(values.get("SubState") or ""),
        result=str(values.get("Result") or "success"),
        main_pid=_number(values, "MainPID"),
        last_pid=_number(values, "ExecMainPID"),
        began_us=_number(values, "ExecMainStartTimestampMonotonic"),
        ended_us=_number(values, "ExecMainExitTimestampMonotonic"),
        code=_number(values, "ExecMainCode"),
        status=_number(values, "ExecMainStatus"),
        restarts=values["NRestarts"] if isinstance(values.get("NRestarts"), int) else None,
        active_us=_number(values, "ActiveEnterTimestampMonotonic"),
        inactive_us=_number(values, "InactiveEnterTimestampMonotonic"),
    )


KEPT = frozenset({
    "InvocationID", "ActiveState", "SubState", "Result", "MainPID", "ExecMainPID",
    "ExecMainStartTimestampMonotonic", "ExecMainExitTimestampMonotonic", "ExecMainCode", "ExecMainStatus",
    "NRestarts", "ActiveEnterTimestampMonotonic", "InactiveEnterTimestampMonotonic",
})  # fmt: skip
"""The properties that `read_state` looks at."""


@dataclass(frozen=True, slots=True)
class Details:
    """What seldom changes of a unit and is told by no signal. ``cgroup`` is None where it is not known."""

    cgroup: str | None = None
    oom_policy: str = ""


def read_details(name: str, values: Mapping[str, Any]) -> Details:
    """The details from properties ``ControlGroup``, ``Slice``, ``OOMPolicy``.

    A unit that is down has no ControlGroup; its place follows from its slice
    (unit_default_cgroup_path() in systemd's src/core/cgroup.c).
    """
    cgroup = str(values.get("ControlGroup") or "")
    owner = str(values.get("Slice") or "")
    if not cgroup and owner:
        cgroup = f"{slice_path(owner)}/{_escaped(name)}"
    return Details(cgroup or None, str(values.get("OOMPolicy") or ""))


def slice_path(name: str) -> str:
    """The cgroup of a slice: ``a-b.slice`` lies in ``a.slice``; the root slice is the root."""
    if name == "-.slice":
        return ""
    parts = name.removesuffix(".slice").split("-")
    return "".join(f"/{_escaped('-'.join(parts[: n + 1]))}.slice" for n in range(len(parts)))


def unit_of(path: str) -> str | None:
    """The unit behind an object path, None for the path of anything else."""
    if not path.startswith(UNITS):
        return None
    label = path.removeprefix(UNITS).encode()
    return _LABEL.sub(lambda match: bytes.fromhex(match[1].decode()), label).decode("utf-8", "replace")


def is_watched(name: str) -> bool:
    """Services and scopes have runs; sessions, monitors and PID 1's own scope are nobody's workload."""
    return name.endswith((".service", ".scope")) and _NOT_A_WORKLOAD.fullmatch(name) is None


def is_container(name: str) -> bool:
    """A scope that belongs to a container, whose runs its own runtime tells."""
    return name.endswith(".scope") and containers.scope(name, ()) is not None


def _number(values: Mapping[str, Any], key: str) -> int:
    value = values.get(key)
    return value if isinstance(value, int) else 0


def _escaped(name: str) -> str:
    """cg_escape(): a name that the kernel could take for a file of its own is led by ``_``."""
    return f"_{name}" if name.startswith(("_", ".", "cgroup.")) else name
