"""Commands as people run them: the real program in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.unit.cli.host_tree import HostTree

CGOTEL = (sys.executable, "-m", "cgotel")

# Root without the capabilities that make it deaf to permissions (capabilities(7)).
UNPRIVILEGED = ("setpriv", "--bounding-set", "-dac_override,-dac_read_search") if os.geteuid() == 0 else ()


@pytest.fixture
def tree(tmp_path: Path) -> HostTree:
    """A host as a tree of files."""
    return HostTree(tmp_path / "host")


@pytest.fixture
def cgotel(tree: HostTree):
    """Runs a command on that host and waits for its end."""

    def run(*arguments: str, privileged=True, **options) -> subprocess.CompletedProcess[str]:
        command = [*(() if privileged else UNPRIVILEGED), *CGOTEL, *arguments]
        options = {"env": tree.environment, "capture_output": True, "text": True, "timeout": 60, **options}
        return subprocess.run(command, check=False, **options)

    return run
