"""A sweep that blocks, as a hanging file system makes it: collectd goes on without it, and ends."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.peers.collectd_process import Collectd, module_paths
from tests.peers.kernel_tree import KernelTree
from tests.peers.stuck_plugin import StuckPlugin

PIDS = "cgotel-web.service/gauge-pids"
LATE = "a sweep has not ended after"


@pytest.fixture
def stuck(tmp_path: Path) -> StuckPlugin:
    """A collector that blocks when it is told to, beside the built-in ones."""
    return StuckPlugin(tmp_path / "stuck")


@pytest.fixture
def collectd(stuck: StuckPlugin, tree: KernelTree, tmp_path: Path) -> Iterator[Collectd]:
    """A collectd that has it, and has read once."""
    environment = {**tree.environment, **stuck.environment}
    paths = (*module_paths(), str(stuck.folder))
    with Collectd(tmp_path / "collectd", environment, paths=paths, interval=0.2) as running:
        running.rows(PIDS)
        yield running


def test_other_plugins_go_on_and_collectd_ends(stuck: StuckPlugin, collectd: Collectd) -> None:
    stuck.block()
    collectd.says(LATE)
    others = len(collectd.rows("uptime/uptime"))
    collectd.rows("uptime/uptime", lambda rows: len(rows) >= others + 5)
    assert collectd.stop(5) == 0
    assert collectd.log.count(LATE) == 1
    assert "it is left behind" in collectd.log


def test_what_blocked_for_a_while_is_caught_up_with(stuck: StuckPlugin, collectd: Collectd) -> None:
    stuck.block()
    collectd.says(LATE)
    before = len(collectd.rows(PIDS))
    stuck.release()
    collectd.rows(PIDS, lambda rows: len(rows) >= before + 3)
    assert collectd.stop(5) == 0
    assert "it is left behind" not in collectd.log
