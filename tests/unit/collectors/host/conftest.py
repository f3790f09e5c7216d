"""A host to look at, and collectors looking at it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.unit.collectors.host import machine

from cgotel.collectors.host import HostCollector, HostConfig
from cgotel.kernel.roots import Roots

Start = Callable[..., HostCollector]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """The recorded machine, to be changed by the test."""
    machine.write(tmp_path, machine.FILES)
    return tmp_path


@pytest.fixture
def start(tree: Path) -> Iterator[Start]:
    """Starts collectors, on the recorded machine where no other is given, and closes them."""
    started: list[HostCollector] = []

    def start(config: HostConfig | None = None, roots: Roots | None = None) -> HostCollector:
        collector = HostCollector(config or HostConfig(), roots or machine.roots(tree))
        collector.start()
        started.append(collector)
        return collector

    yield start
    for collector in started:
        collector.close()


@pytest.fixture
def collector(start: Start) -> HostCollector:
    """A collector with the default settings that has started on the recorded machine."""
    return start()
