"""The queries in the documents name what the real daemons deliver: measurements, fields, tags, labels."""

from __future__ import annotations

import re
import socket
import urllib.request
from collections.abc import Iterable
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.peers import telegraf as telegraf_build
from tests.peers.collectd_process import Collectd
from tests.peers.kernel_tree import KernelTree
from tests.peers.pins import ROOT
from tests.peers.telegraf_process import Telegraf, execd
from tests.peers.waiting import eventually
from tests.unit.outputs.parsed_lines import Line

LIMIT_S = 20

Labels = dict[str, set[str]]
"""Names of labels with their values."""


def section(page: str, title: str) -> str:
    """The text below a title."""
    text = (ROOT / "docs" / page).read_text("utf-8")
    return text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


QUERIES = section("telegraf.md", "Queries for Grafana")
INFLUXQL, FLUX, PROMQL = re.findall(r"```\w+\n(.*?)```", QUERIES, re.DOTALL)
OF_COLLECTD = section("collectd.md", "Queries")


@pytest.fixture(scope="session")
def executable() -> Path:
    """Telegraf's executable."""
    return telegraf_build.binary()


@pytest.fixture
def lines(executable: Path, tmp_path: Path, tree: KernelTree) -> list[Line]:
    """What arrives through Telegraf."""
    with Telegraf(executable, tmp_path / "telegraf", tree.environment, execd()) as telegraf:
        return telegraf.lines(lambda lines: any(line.measurement == "cgotel_source" for line in lines))


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


def exposed(port: int, wanted: Iterable[tuple[str, str, str]]) -> dict[str, Labels]:
    """The samples by name, with their labels, once each wanted one has a label of that value."""

    def scraped() -> dict[str, Labels] | None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=LIMIT_S) as answer:
                text = answer.read().decode()
        except OSError:
            return None
        found: dict[str, Labels] = {}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                labels = found.setdefault(sample.name, {})
                for name, value in sample.labels.items():
                    labels.setdefault(name, set()).add(value)
        there = all(value in found.get(name, {}).get(label, ()) for name, label, value in wanted)
        return found if there else None

    return eventually(scraped, LIMIT_S, f"these are exposed: {wanted}")


def test_influxql_names_what_arrives(lines: list[Line]) -> None:
    [measurement] = re.findall(r'FROM "(\w+)"', INFLUXQL)
    of_it = [line for line in lines if line.measurement == measurement]
    names = set(re.findall(r'"([^"]+)"', INFLUXQL)) - {measurement}
    [field] = [name for name in names if "." in name]
    with_field = [line for line in of_it if field in line.fields]
    tags = names - {field}
    assert tags == {"kind", "name"}
    assert any(tags <= line.tags.keys() for line in with_field)
    kinds = re.findall(r'"kind" =~ /\^\(([\w|]+)\)\$/', INFLUXQL)[0].split("|")
    assert {line.tags["kind"] for line in of_it} >= set(kinds)


def test_flux_names_what_arrives(lines: list[Line]) -> None:
    [measurement] = re.findall(r'_measurement == "(\w+)"', FLUX)
    [field] = re.findall(r'_field == "([\w.]+)"', FLUX)
    tags = set(re.findall(r'"(\w+)"', re.findall(r"columns: \[(.*)\]", FLUX)[0]))
    found = [line for line in lines if line.measurement == measurement and field in line.fields]
    assert found
    assert all(tags <= line.tags.keys() for line in found)


def test_promql_names_what_telegraf_exposes(executable: Path, tmp_path: Path, tree: KernelTree) -> None:
    port = free_port()
    outputs = f'[[outputs.prometheus_client]]\n  listen = "127.0.0.1:{port}"\n'
    names = re.findall(r"\b(cgotel_\w+)", PROMQL)
    assert len(names) == 2
    with Telegraf(executable, tmp_path / "telegraf", tree.environment, execd(), outputs):
        exposed(port, [(name, "kind", "container") for name in names])


def test_promql_names_what_collectd_exposes(tree: KernelTree, tmp_path: Path) -> None:
    port = free_port()
    more = (
        "LoadPlugin write_prometheus\n"
        f'<Plugin write_prometheus>\n  Host "127.0.0.1"\n  Port "{port}"\n</Plugin>\n'
    )
    selectors = re.findall(r'\b(collectd_cgotel_\w+)\{type="([^"]+)"\}', OF_COLLECTD)
    assert len(selectors) >= 5
    with Collectd(tmp_path / "collectd", tree.environment, interval=0.5, more=more) as collectd:
        samples = exposed(port, [(name, "type", instance) for name, instance in selectors])
        assert collectd.stop() == 0
    assert all({"cgotel", "instance"} <= samples[name].keys() for name, _ in selectors)
    assert set(re.findall(r"on\((.*?)\)", OF_COLLECTD)) == {"cgotel, instance"}


def test_influxql_of_collectd_names_a_value_that_it_has(tree: KernelTree, tmp_path: Path) -> None:
    """How Telegraf's parser names it: the data source's name behind the plugin's, and three tags."""
    [kind] = re.findall(r"\"type\" = '(\w+)'", OF_COLLECTD)
    [instance] = re.findall(r"\"type_instance\" = '([\w-]+)'", OF_COLLECTD)
    with Collectd(tmp_path / "collectd", tree.environment) as collectd:
        wanted = f"/{kind}-{instance}"
        eventually(lambda: any(name.endswith(wanted) for name in collectd.names()), LIMIT_S, wanted)
        assert collectd.stop() == 0
