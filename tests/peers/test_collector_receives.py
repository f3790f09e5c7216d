"""A host of files, swept by ``cgotel agent``: what the Collector received is what the files say."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.peers.agent_process import PROTOCOLS, one_sweep, otlp_to
from tests.peers.collector_process import Collector
from tests.peers.expected import (
    ABSENT_FROM_CONTAINER,
    CONTAINER_ROWS,
    HOST_ROWS,
    ROOT_ROWS,
    SERVICE_ROWS,
    Row,
)
from tests.peers.kernel_tree import (
    BOOTED_S,
    CONTAINER,
    CONTAINER_ID,
    HOST_ID,
    HOST_NAME,
    SERVICE,
    SLICE,
    KernelTree,
)
from tests.peers.received import Point

BOOTED_NS = BOOTED_S * 10**9


@dataclass(frozen=True)
class Swept:
    """One sweep at the far end, between two moments."""

    tree: KernelTree
    points: list[Point]
    before_ns: int
    after_ns: int

    def of(self, cgroup: str) -> list[Point]:
        return [p for p in self.points if p.resource.get("process.linux.cgroup") == f"0::{cgroup}"]

    @property
    def of_host(self) -> list[Point]:
        return [p for p in self.points if p.name.startswith("system.")]


@pytest.fixture(scope="module", params=PROTOCOLS)
def swept(
    request: pytest.FixtureRequest, collector_binary: Path, tmp_path_factory: pytest.TempPathFactory
) -> Swept:
    folder = tmp_path_factory.mktemp("swept")
    tree = KernelTree(folder / "host")
    before_ns = time.time_ns()
    with Collector(collector_binary, folder / "collector") as collector:
        points = one_sweep(collector, folder / "agent", otlp_to(collector, request.param) | tree.environment)
    return Swept(tree, points, before_ns, time.time_ns())


def assert_all(rows: list[Row], points: list[Point]) -> None:
    missing = [row for row in rows if not row.found_in(points)]
    assert not missing, [point for point in points if point.name in {row.name for row in missing}]


def test_a_container_arrives_as_its_files_say(swept: Swept) -> None:
    assert_all(CONTAINER_ROWS, swept.of(CONTAINER))


def test_faults_of_a_container_are_major_or_minor(swept: Swept) -> None:
    faults = {
        point.attributes["system.paging.fault.type"]: point.value
        for point in swept.of(CONTAINER)
        if point.name == "container.paging.faults"
    }
    assert faults == {"major": 40, "minor": 960}


def test_what_is_not_limited_or_not_there_gives_no_point(swept: Swept) -> None:
    assert not ABSENT_FROM_CONTAINER & {point.name for point in swept.of(CONTAINER)}


def test_a_service_arrives_under_cgroup_names(swept: Swept) -> None:
    assert_all(SERVICE_ROWS, swept.of(SERVICE))


def test_the_root_arrives(swept: Swept) -> None:
    assert_all(ROOT_ROWS, swept.of("/"))


def test_the_host_arrives(swept: Swept) -> None:
    assert_all(HOST_ROWS, swept.of_host)


def test_the_machine_has_no_full_cpu_pressure(swept: Swept) -> None:
    [point] = [p for p in swept.of_host if p.name == "system.cpu.linux.pressure.time"]
    assert point.attributes == {"system.linux.pressure.stall_type": "some"}


def test_each_entity_is_one_resource(swept: Swept) -> None:
    for cgroup in ("/", SLICE, CONTAINER, SERVICE):
        resources = [point.resource for point in swept.of(cgroup)]
        assert resources
        assert all(resource == resources[0] for resource in resources)


def test_a_container_says_what_it_is_and_where(swept: Swept) -> None:
    resource = swept.of(CONTAINER)[0].resource
    assert resource["container.id"] == CONTAINER_ID
    assert resource["container.runtime.name"] == "docker"
    assert (resource["host.name"], resource["host.id"]) == (HOST_NAME, HOST_ID)
    assert "service.name" not in resource


def test_a_service_says_its_unit(swept: Swept) -> None:
    resource = swept.of(SERVICE)[0].resource
    assert resource["systemd.unit.name"] == "web.service"
    assert "container.id" not in resource


def test_the_agent_is_a_service_of_its_own(swept: Swept) -> None:
    own = [p for p in swept.points if p.name == "cgotel.sweep.points"]
    assert [point.resource["service.name"] for point in own] == ["cgotel"]


def test_sums_start_where_their_entity_began(swept: Swept) -> None:
    for cgroup in ("/", SLICE, CONTAINER, SERVICE):
        starts = {point.start_ns for point in swept.of(cgroup) if point.kind == "sum"}
        assert starts == {swept.tree.began_ns(cgroup)}


def test_sums_of_the_host_start_at_boot(swept: Swept) -> None:
    assert {point.start_ns for point in swept.of_host if point.kind == "sum"} == {BOOTED_NS}


def test_gauges_have_no_start(swept: Swept) -> None:
    assert {point.start_ns for point in swept.points if point.kind == "gauge"} == {None}


def test_a_sweep_is_one_instant(swept: Swept) -> None:
    [time_ns] = {point.time_ns for point in swept.points}
    assert swept.before_ns <= time_ns <= swept.after_ns


def test_every_metric_is_described_by_one_scope_and_schema(swept: Swept) -> None:
    assert {point.scope for point in swept.points} == {"cgotel"}
    assert {point.schema_url for point in swept.points} == {"https://opentelemetry.io/schemas/1.44.0"}
    assert all(point.unit and point.description for point in swept.points)
