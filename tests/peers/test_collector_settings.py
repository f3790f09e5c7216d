"""What the user sets by OpenTelemetry's variables is what the Collector sees."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.peers.agent_process import PROTOCOLS, Agent, one_sweep, otlp_to
from tests.peers.collector_process import Collector
from tests.peers.kernel_tree import CONTAINER, CONTAINER_ID, MIB, SLICE, KernelTree
from tests.peers.received import Point
from tests.peers.waiting import until_read

OOM_KILL = "cgotel.oom.kill"


def named(points: list[Point], name: str, **attributes: str) -> list[Point]:
    """The points of one metric of the container, with the short attribute that they are told by."""
    wanted = {key.replace("_", "."): value for key, value in attributes.items()}
    return [
        point
        for point in points
        if (point.name, point.resource.get("container.id")) == (name, CONTAINER_ID)
        and wanted.items() <= point.attributes.items()
    ]


def test_resource_attributes_of_the_user_are_on_every_resource(
    collector: Collector, tree: KernelTree, tmp_path: Path
) -> None:
    environment = {
        **otlp_to(collector, "http/protobuf"),
        **tree.environment,
        "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=test%20lab,team=a",
        "OTEL_SERVICE_NAME": "edge-agent",
    }
    points = one_sweep(collector, tmp_path / "agent", environment)

    for point in points:
        assert point.resource["deployment.environment.name"] == "test lab"
        assert point.resource["team"] == "a"
        assert point.resource["service.name"] == "edge-agent"


@pytest.mark.parametrize("compression", ["gzip", "none"])
def test_requests_are_compressed_as_asked(
    collector_binary: Path, tree: KernelTree, tmp_path: Path, compression: str
) -> None:
    only = "" if compression == "none" else compression
    with Collector(collector_binary, tmp_path / "collector", {"compression_algorithms": [only]}) as collector:
        environment = {
            **otlp_to(collector, "http/protobuf"),
            **tree.environment,
            "OTEL_EXPORTER_OTLP_COMPRESSION": compression,
        }
        points = one_sweep(collector, tmp_path / "agent", environment)
    assert named(points, "container.memory.usage")


def test_a_base_path_is_kept(collector_binary: Path, tree: KernelTree, tmp_path: Path) -> None:
    http = {"metrics_url_path": "/tenant/v1/metrics", "logs_url_path": "/tenant/v1/logs"}
    with Collector(collector_binary, tmp_path / "collector", http) as collector:
        environment = {
            **otlp_to(collector, "http/protobuf"),
            **tree.environment,
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"{collector.http_endpoint}/tenant",
        }
        points = one_sweep(collector, tmp_path / "agent", environment)
    assert named(points, "container.memory.usage")


def test_delta_temporality_sends_differences(collector: Collector, tree: KernelTree, tmp_path: Path) -> None:
    environment = {
        **otlp_to(collector, "http/protobuf"),
        **tree.environment,
        "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE": "delta",
    }
    with Agent(tmp_path / "agent", environment):
        before = named(collector.metrics(), "container.memory.usage")[0]
        tree.change(CONTAINER, "cpu.stat", "user_usec 5000000", "user_usec 5750000")
        points = collector.metrics(
            lambda points: any(p.value for p in named(points, "container.cpu.time", cpu_mode="user"))
        )

    [change] = [p for p in named(points, "container.cpu.time", cpu_mode="user") if p.value]
    assert change.value == 0.75
    assert (change.temporality, change.monotonic) == ("delta", True)
    assert change.start_ns is not None
    assert before.time_ns <= change.start_ns < change.time_ns


def test_deltas_leave_updowncounters_cumulative(
    collector: Collector, tree: KernelTree, tmp_path: Path
) -> None:
    environment = {
        **otlp_to(collector, "grpc"),
        **tree.environment,
        "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE": "delta",
    }
    points = one_sweep(collector, tmp_path / "agent", environment)
    [usage] = named(points, "container.memory.usage")
    assert (usage.temporality, usage.monotonic, usage.value) == ("cumulative", False, 300 * MIB)
    assert usage.start_ns == tree.began_ns(CONTAINER)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_oom_kill_arrives_as_a_log_event(
    collector: Collector, tree: KernelTree, tmp_path: Path, protocol: str
) -> None:
    with Agent(tmp_path / "agent", otlp_to(collector, protocol) | tree.environment):
        collector.metrics()
        tree.change(CONTAINER, "memory.events.local", "oom_kill 1", "oom_kill 3")
        [event] = collector.logs()

    assert event.event_name == OOM_KILL
    assert event.severity == 17
    assert event.resource["container.id"] == CONTAINER_ID
    assert event.attributes["cgotel.oom.kills"] == 2
    assert event.attributes["log.record.uid"]
    assert event.time_ns <= event.observed_ns


def test_hundreds_of_containers_pass_the_limit_of_grpc(
    collector: Collector, tree: KernelTree, tmp_path: Path
) -> None:
    """The Collector takes 4 MiB in a gRPC message by default; this sweep is larger."""
    ids = {f"{number:064x}" for number in range(600)}
    for container_id in ids:
        tree.add_like(f"{SLICE}/docker-{container_id}.scope", CONTAINER)
    points = one_sweep(collector, tmp_path / "agent", otlp_to(collector, "grpc") | tree.environment)

    usages = [p.resource["container.id"] for p in points if p.name == "container.memory.usage"]
    assert sorted(usages) == sorted(ids | {CONTAINER_ID})


def test_the_interval_is_the_one_of_the_environment(
    collector: Collector, tree: KernelTree, tmp_path: Path
) -> None:
    """Three sweeps at the agent's own interval of 10 s would come too late for this test."""
    with Agent(tmp_path / "agent", otlp_to(collector, "grpc") | tree.environment):
        until_read(tree.path(CONTAINER, "memory.current"))
        for _ in range(2):
            until_read(tree.path(CONTAINER, "memory.current"), timeout_s=5)
