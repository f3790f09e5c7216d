from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from tests.unit.runtimes.engine.engine_server import Engine

from cgotel.clock import Timeline
from cgotel.contract import Bookmark
from cgotel.kernel.roots import Roots
from cgotel.runtimes.docker import DockerWatcher
from cgotel.runtimes.engine.watcher import EngineWatcher
from cgotel.runtimes.podman import PodmanWatcher


@pytest.fixture
def sockets() -> Iterator[Path]:
    """A directory with a short name: a Unix socket's path has room for 107 bytes."""
    with TemporaryDirectory(prefix="cgotel-") as directory:
        yield Path(directory)


@pytest.fixture
def engine(sockets: Path) -> Iterator[Engine]:
    """A daemon; whatever a test did, it was asked by GET only."""
    engine = Engine(sockets / "docker.sock")
    yield engine
    engine.close()
    assert {method for method, _ in engine.asked} <= {"GET"}


@pytest.fixture
def podman(sockets: Path) -> Iterator[Engine]:
    engine = Engine(sockets / "podman.sock", podman=True)
    yield engine
    engine.close()
    assert {method for method, _ in engine.asked} <= {"GET"}


@pytest.fixture
def watching() -> Callable[..., EngineWatcher]:
    """Makes the watcher of a daemon; one that gets the same bookmark goes on where another left off."""

    def make(engine: Engine, bookmark: Bookmark | None = None, **settings: object) -> EngineWatcher:
        kind = PodmanWatcher if engine.podman else DockerWatcher
        config = kind.Config(socket=str(engine.path), **settings)
        return kind(config, Roots(proc="/nowhere"), Timeline(), bookmark or Bookmark())

    return make
