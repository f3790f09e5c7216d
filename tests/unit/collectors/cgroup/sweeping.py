"""A machine made of files, swept at whole seconds."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.unit.collectors.cgroup.kernel_files import PROC, ROOT, SYS

from cgotel.collectors.cgroup import CgroupCollector, CgroupConfig
from cgotel.contract import Tick
from cgotel.kernel.roots import Roots
from cgotel.kernel.source import State
from cgotel.model import Reading
from cgotel.testing import Tree, tree

SECOND = 10**9


class Cgroups:
    """``write`` what the kernel says, ``sweep`` at a second, ``remove`` a cgroup."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.mount = tree(ROOT, into=directory / "cgroup")
        tree({"proc": PROC, "sys": SYS}, into=directory)
        self.roots = Roots(str(directory / "proc"), str(directory / "sys"), str(self.mount))
        self.collector = self._collector({})

    def write(self, content: Tree) -> None:
        """Files and cgroups from the root on."""
        tree(content, into=self.mount)

    def remove(self, path: str) -> None:
        """A cgroup with all that is below it, or a file."""
        target = self.mount / path
        shutil.rmtree(target) if target.is_dir() else target.unlink()

    def configure(self, **config: Any) -> None:
        """Start anew with this configuration."""
        self.collector.close()
        self.collector = self._collector(config)

    def sweep(self, second: int = 0) -> Mapping[str, Reading]:
        """The readings of a second, by the path from the cgroup root."""
        instant = second * SECOND
        return {path_of(r): r for r in self.collector.collect(Tick(instant, instant))}

    def states(self) -> dict[str, State]:
        """The state of every source behind the last sweep."""
        return {status.name: status.state for status in self.collector.sources()}

    def _collector(self, config: dict[str, Any]) -> CgroupCollector:
        collector = CgroupCollector(CgroupConfig(**config), self.roots)
        collector.start()
        return collector


def path_of(reading: Reading) -> str:
    return str(reading.entity.attributes["process.linux.cgroup"]).removeprefix("0::")
