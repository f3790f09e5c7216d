"""Hypothesis without a time limit for each example, and cgroups stated in the test itself."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.collectors.cgroup.sweeping import Cgroups
from tests.unit.kernel.real import cgroup

__all__ = ["cgroup"]


@pytest.fixture
def cgroups(tmp_path: Path) -> Iterator[Cgroups]:
    """A machine's tree of cgroups, empty at first, and a collector that sweeps it."""
    machine = Cgroups(tmp_path)
    yield machine
    machine.collector.close()
