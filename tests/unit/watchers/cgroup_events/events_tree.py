"""A tree of events files that a test updates as the kernel does: in place, never empty."""

from __future__ import annotations

from pathlib import Path

from cgotel.clock import Timeline
from cgotel.contract import Bookmark
from cgotel.kernel.roots import Roots
from cgotel.testing import tree
from cgotel.watchers.cgroup_events import CgroupEvents, CgroupEventsConfig

BOOT = "8d3f1b0e-2f5a-4d0c-9a53-0a4f2f6f0c11\n"
_WIDTH = 12


def events(**counts: int) -> str:
    """A flat keyed file whose numbers can grow without its length changing."""
    return "".join(f"{key} {n:0{_WIDTH}}\n" for key, n in counts.items())


def memory(**counts: int) -> str:
    """memory.events as Linux 6.1 prints it."""
    zeros = dict.fromkeys(("low", "high", "max", "oom", "oom_kill", "oom_group_kill"), 0)
    return events(**zeros | counts)


class Host:
    """Cgroups and what /proc says beside them."""

    def __init__(self, folder: Path, options: str = "rw,nsdelegate", watches: int = 8192) -> None:
        self.mount = folder / "cgroup"
        self.proc = folder / "proc"
        self.mount.mkdir()
        tree(
            {
                "self": {"mounts": f"cgroup2 /sys/fs/cgroup cgroup2 {options} 0 0\n"},
                "sys": {
                    "fs": {"inotify": {"max_user_watches": f"{watches}\n"}},
                    "kernel": {"random": {"boot_id": BOOT}},
                },
            },
            into=self.proc,
        )
        self.bookmark = Bookmark()

    def cgroup(self, path: str, **files: str) -> None:
        """A cgroup that is there before anyone looks; keywords are files with ``_`` for ``.``."""
        content = {"cgroup_events": events(populated=1, frozen=0), **files}
        tree({name.replace("_", "."): text for name, text in content.items()}, into=self.mount / path)

    def write(self, path: str, text: str) -> None:
        """Update one file in place."""
        with open(self.mount / path, "r+b") as file:
            file.write(text.encode())

    def watcher(self, timeline: Timeline | None = None, **config: object) -> CgroupEvents:
        """A watcher of this host; each life of it has the same bookmark."""
        roots = Roots(str(self.proc), "/sys", str(self.mount))
        return CgroupEvents(CgroupEventsConfig(**config), roots, timeline or Timeline(), self.bookmark)
