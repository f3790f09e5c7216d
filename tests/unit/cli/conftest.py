"""Commands as people run them: the real program in a process of its own."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.unit.cli.host_tree import HostTree

CGOTEL = (sys.executable, "-m", "cgotel")


@pytest.fixture
def tree(tmp_path: Path) -> HostTree:
    """A host as a tree of files."""
    return HostTree(tmp_path / "host")


@pytest.fixture
def cgotel(tree: HostTree):
    """Runs a command on that host and waits for its end."""

    def run(*arguments: str, **options) -> subprocess.CompletedProcess[str]:
        options = {"env": tree.environment, "capture_output": True, "text": True, "timeout": 60, **options}
        return subprocess.run([*CGOTEL, *arguments], check=False, **options)

    return run
