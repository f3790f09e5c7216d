"""Controllers that are missing, and where on the way down the tree one is not passed on."""

from __future__ import annotations

from collections.abc import Iterator

from cgotel.doctor.facts import MAIN_CONTROLLERS, Facts
from cgotel.doctor.finding import Finding, Level

CHECK = "controllers"

_ACCOUNTING = {"memory": "Memory", "io": "IO", "cpu": "CPU", "pids": "Tasks"}


def check(facts: Facts) -> Iterator[Finding]:
    """What the kernel, the command line or a parent keeps from cgroups."""
    if facts.roots.cgroup is None:
        return
    missing = [name for name in facts.missing if name not in facts.hierarchy.v1]
    main = [name for name in missing if name in MAIN_CONTROLLERS]
    yield from _missing(main, facts)
    others = [name for name in missing if name not in MAIN_CONTROLLERS]
    if others:
        yield Finding(CHECK, Level.NOTE, f"not here: {', '.join(others)}; few hosts need them")
    withheld = {name: facts.withheld(name) for name in MAIN_CONTROLLERS}
    for name, paths in withheld.items():
        inside = tuple(path for path in paths if _in_a_unit(path))
        if between := tuple(path for path in paths if path not in inside):
            yield _withheld(name, between)
        if inside:
            yield Finding(
                CHECK,
                Level.NOTE,
                f"{name} is not enabled inside {_count(inside)}, measured as a whole each",
                affected=inside,
            )
    if not any(withheld.values()) and not any(name in facts.missing for name in MAIN_CONTROLLERS):
        yield Finding(CHECK, Level.OK, f"{', '.join(MAIN_CONTROLLERS)} reach every cgroup")


def _missing(names: list[str], facts: Facts) -> Iterator[Finding]:
    disabled = [name for name in names if name in facts.hierarchy.disabled]
    for name in disabled:
        yield Finding(
            CHECK,
            Level.LOST,
            f"{name} is disabled at boot",
            f"take cgroup_disable={name} off the kernel command line, or add cgroup_enable={name}",
        )
    others = [name for name in names if name not in disabled]
    if others and facts.namespaced:
        yield Finding(
            CHECK,
            Level.LOST,
            f"{', '.join(others)}: not passed on to this container",
            "run the agent on the host, or with the host's cgroup namespace (--cgroupns=host)",
        )
    elif others:
        yield Finding(
            CHECK,
            Level.LOST,
            f"{', '.join(others)}: not available to cgroup v2",
            "a kernel with CONFIG_MEMCG, CONFIG_BLK_CGROUP, CONFIG_CGROUP_SCHED and CONFIG_CGROUP_PIDS",
        )


def _withheld(controller: str, paths: tuple[str, ...]) -> Finding:
    text = f"{controller} is not enabled for what lies below {_count(paths)}"
    if controller == "cpu":
        text += ": CPU time is measured, and no quota can be set there"
    return Finding(
        CHECK,
        Level.NOTE if controller == "cpu" else Level.LOST,
        text,
        f"Default{_ACCOUNTING[controller]}Accounting=yes in /etc/systemd/system.conf and systemctl "
        f"daemon-reexec; without systemd write +{controller} to cgroup.subtree_control, from the root down",
        paths,
    )


def _in_a_unit(path: str) -> bool:
    """Whether a cgroup is a service or scope, or lies in one: what it does below is its own affair."""
    return any(name.endswith((".service", ".scope")) for name in path.split("/"))


def _count(paths: tuple[str, ...]) -> str:
    return "one cgroup" if len(paths) == 1 else f"{len(paths)} cgroups"
