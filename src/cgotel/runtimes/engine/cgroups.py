"""The cgroup of a container: from its main process while that lives, and else from where it was put."""

from __future__ import annotations

import posixpath

from cgotel.kernel.files import read_once
from cgotel.kernel.roots import Roots
from cgotel.runtimes.engine.dialect import Dialect
from cgotel.runtimes.engine.messages import About
from cgotel.runtimes.process import cgroup_of


def of_process(pid: int, container: str, roots: Roots) -> tuple[int | None, str | None]:
    """The pid if it is the container's, and the cgroup that bears the container's name.

    crun puts the process one below (``libpod-ID.scope/container``), where no limit is. A pid that a
    daemon counts in a namespace of its own, or that was given to somebody else, is none.
    """
    try:
        if container.encode() not in read_once(f"{roots.proc}/{pid}/cgroup"):
            return None, None
    except OSError:
        return None, None
    path = cgroup_of(pid, roots) or ""
    names = path.split("/")
    bearing = [index for index, name in enumerate(names) if container in name]
    if not bearing or ".." in names:  # of another hierarchy, or outside of our cgroup namespace
        return pid, None
    return pid, "/".join(names[: bearing[-1] + 1])


def by_shape(container: str, parent: str, dialect: Dialect, about: About, uid: int) -> str:
    """Where the engine puts a container below ``parent``, empty for its own choice."""
    if not about.systemd:
        name = container if dialect.prefix == "docker" else f"{dialect.prefix}-{container}"
        return posixpath.join("/", parent.lstrip("/") or dialect.directory, name)
    scope = f"{dialect.prefix}-{container}.scope"
    if about.rootless:
        manager = f"/user.slice/user-{uid}.slice/user@{uid}.service"
        return manager + _slice(parent or "user.slice") + "/" + scope
    return _slice(parent or dialect.slice) + "/" + scope


def _slice(name: str) -> str:
    """``ai-train.slice`` lies in ``ai.slice`` (systemd.slice(5)); a path of slices is its last one."""
    name = posixpath.basename(name.rstrip("/"))
    parts = name.removesuffix(".slice").split("-")
    return "".join(f"/{'-'.join(parts[: count + 1])}.slice" for count in range(len(parts)))
