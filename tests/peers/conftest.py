"""Real peers, built once a session and run once a test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.peers import collector as collector_build
from tests.peers.collector_process import Collector
from tests.peers.kernel_tree import KernelTree


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Building a peer takes minutes and has limits of its own: time the tests, not their fixtures."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.timeout(240, func_only=True))


@pytest.fixture(scope="session")
def collector_binary() -> Path:
    """The executable of the official Collector."""
    return collector_build.binary()


@pytest.fixture
def collector(collector_binary: Path, tmp_path: Path) -> Iterator[Collector]:
    """A running Collector; what it logged is shown with a test that fails."""
    with Collector(collector_binary, tmp_path / "collector") as running:
        yield running
        print(running.log)


@pytest.fixture
def tree(tmp_path: Path) -> KernelTree:
    """A small host as a tree of files."""
    return KernelTree(tmp_path / "host")
