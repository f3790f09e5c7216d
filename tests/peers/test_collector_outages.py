"""What was read is not lost: to a stop of the agent, to an outage of the Collector."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest
from tests.peers.agent_process import PROTOCOLS, Agent, otlp_to
from tests.peers.collector_process import Collector
from tests.peers.kernel_tree import CONTAINER, CONTAINER_ID, MIB, KernelTree
from tests.peers.received import Point
from tests.peers.waiting import eventually, until_read

FIRST, SECOND, THIRD = 300 * MIB, 301 * MIB, 302 * MIB


def usages(points: list[Point]) -> list[float | None]:
    """The container's memory usage in bytes, as it arrived; None where the series ended."""
    return [
        point.value
        for point in points
        if (point.name, point.resource.get("container.id")) == ("container.memory.usage", CONTAINER_ID)
    ]


def is_connected(agent: Agent, collector: Collector) -> bool:
    """Whether the agent has a connection to the Collector: it is sending."""
    ports = {int(url.rpartition(":")[2]) for url in (collector.http_endpoint, collector.grpc_endpoint)}
    connections = psutil.Process(agent.pid).net_connections("tcp")
    return any(c.raddr and c.raddr.port in ports and c.status == "ESTABLISHED" for c in connections)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_sigterm_flushes_what_was_read(
    collector: Collector, tree: KernelTree, tmp_path: Path, protocol: str
) -> None:
    with Agent(tmp_path / "agent", otlp_to(collector, protocol) | tree.environment) as agent:
        collector.metrics(usages)
        until_read(tree.change(CONTAINER, "memory.current", str(FIRST), str(SECOND)))
        agent.terminate()
        assert agent.wait() == 0

    collector.metrics(lambda points: SECOND in usages(points))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_sigterm_in_the_middle_of_an_export_waits_for_its_end(
    collector: Collector, tree: KernelTree, tmp_path: Path, protocol: str
) -> None:
    collector.hang()
    with Agent(tmp_path / "agent", otlp_to(collector, protocol) | tree.environment) as agent:
        eventually(lambda: is_connected(agent, collector), 20, "the agent sends")
        agent.terminate()
        collector.go_on()
        assert agent.wait() == 0

    assert FIRST in usages(collector.metrics(usages))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_collector_that_hangs_does_not_hold_the_agent(
    collector: Collector, tree: KernelTree, tmp_path: Path, protocol: str
) -> None:
    """It flushes for five seconds, whatever a single request may take."""
    collector.hang()
    a_minute = {"OTEL_EXPORTER_OTLP_TIMEOUT": "60000"}
    with Agent(tmp_path / "agent", otlp_to(collector, protocol) | tree.environment | a_minute) as agent:
        eventually(lambda: is_connected(agent, collector), 20, "the agent sends")
        agent.terminate()
        assert agent.wait(limit_s=20) == 0
        assert "are lost" in agent.log


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_sweeps_of_an_outage_arrive_after_it(
    collector: Collector, tree: KernelTree, tmp_path: Path, protocol: str
) -> None:
    with Agent(tmp_path / "agent", otlp_to(collector, protocol) | tree.environment) as agent:
        collector.metrics(usages)
        assert collector.stop() == 0
        until_read(tree.change(CONTAINER, "memory.current", str(FIRST), str(SECOND)))
        until_read(tree.change(CONTAINER, "memory.current", str(SECOND), str(THIRD)))
        collector.start()
        arrived = usages(collector.metrics(lambda points: THIRD in usages(points)))
        agent.terminate()
        assert agent.wait() == 0

    in_order = [FIRST] * arrived.count(FIRST) + [SECOND] * arrived.count(SECOND) + [THIRD]
    assert SECOND in arrived
    assert arrived[: len(in_order)] == in_order


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_killed_collector_gets_points_again(
    collector: Collector, tree: KernelTree, tmp_path: Path, protocol: str
) -> None:
    with Agent(tmp_path / "agent", otlp_to(collector, protocol) | tree.environment):
        collector.metrics(usages)
        collector.kill()
        until_read(tree.change(CONTAINER, "memory.current", str(FIRST), str(SECOND)))
        collector.start()
        collector.metrics(lambda points: SECOND in usages(points))


def test_a_cgroup_that_is_gone_ends_its_series(
    collector: Collector, tree: KernelTree, tmp_path: Path
) -> None:
    with Agent(tmp_path / "agent", otlp_to(collector, "grpc") | tree.environment):
        collector.metrics(usages)
        tree.remove(CONTAINER)
        arrived = usages(collector.metrics(lambda points: None in usages(points)))

    assert arrived == [FIRST] * (len(arrived) - 1) + [None]
