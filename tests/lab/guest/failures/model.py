"""One way for a workload to end, made to happen, and what has to be known to judge a verdict on it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from tests.lab.guest.supervisors.model import End, Supervisor, Workload

ALL = ("docker", "podman", "containerd", "systemd")
CONTAINERS = ("docker", "podman", "containerd")
ENGINES = ("docker", "podman")


@dataclass(frozen=True, slots=True)
class Caused:
    """What came of it.

    ``workload`` is the run that ended and ``ends`` how often it did (0: it lives on, ``end`` is
    then what is said of it while it runs). ``limit`` is the cgroup whose limit was hit, ``by`` the
    command of the process that sent the signal which ended it. ``kernel`` has the kernel's lines on it.
    """

    workload: Workload
    end: End
    ends: int = 1
    limit: str | None = None
    by: str | None = None
    kernel: tuple[str, ...] = ()

    def with_kernel(self, lines: tuple[str, ...]) -> Caused:
        return replace(self, kernel=lines)


Make: TypeAlias = Callable[[Supervisor, str], Caused]


@dataclass(frozen=True, slots=True)
class Failure:
    """``make(supervisor, name)`` makes it happen to a workload of that name.

    ``cause`` is the verdict with every source there (None: nothing ended, so no verdict);
    ``or_else`` holds what else is no wrong answer when sources are missing: never a memory cause.
    ``alone``: it takes the memory of the whole machine, so nothing else may run beside it.
    """

    name: str
    cause: str | None
    make: Make = field(repr=False)
    on: tuple[str, ...]
    or_else: frozenset[str]
    alone: bool


def failure(
    cause: str | None, on: tuple[str, ...] = ALL, or_else: tuple[str, ...] = (), alone: bool = False
) -> Callable[[Make], Failure]:
    """Make a `Failure` of the function that causes it; without sources it may always be ``unknown``."""

    def made(make: Make) -> Failure:
        return Failure(make.__name__, cause, make, on, frozenset((*or_else, "unknown")), alone)

    return made
