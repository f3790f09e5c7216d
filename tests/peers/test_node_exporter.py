"""The real node_exporter takes a snapshot from its textfile directory and exposes every sample of it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.peers import golang
from tests.peers.kernel_tree import CONTAINER, KernelTree
from tests.peers.pins import PINS, cached

_BUILD_LIMIT_S = 600
_LISTENS = re.compile(r'"?Listening on"?.*address=(\S+)')

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


@pytest.fixture(scope="session")
def node_exporter() -> Path:
    """The executable, built from its Go module."""
    return cached("node_exporter", PINS["node_exporter"], _build) / "node_exporter"


def _build(folder: Path) -> None:
    install = ["env", f"GOBIN={folder}", golang.go(), "install", PINS["node_exporter"]["module"]]
    golang.run(install, cwd=folder, timeout_s=_BUILD_LIMIT_S)


@contextmanager
def exposed(executable: Path, textfiles: Path) -> Iterator[str]:
    """The URL of a running node_exporter that reads text files and nothing else."""
    command = [
        executable,
        "--collector.disable-defaults",
        "--collector.textfile",
        f"--collector.textfile.directory={textfiles}",
        "--web.disable-exporter-metrics",
        "--web.listen-address=127.0.0.1:0",
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            address = next(found[1] for line in process.stderr if (found := _LISTENS.search(line)))
            yield f"http://{address}/metrics"
        finally:
            process.terminate()


def samples_of(text: str) -> Samples:
    """Samples by name and labels; an empty label is none to Prometheus."""
    return {
        (sample.name, frozenset((key, value) for key, value in sample.labels.items() if value)): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_every_sample_is_exposed_as_it_was_written(
    node_exporter: Path, tree: KernelTree, tmp_path: Path
) -> None:
    hostile = '/system.slice/a"b\\c\nd{e}\u65e5.service'
    tree.add(hostile, {"cpu.stat": "usage_usec 3\nuser_usec 1\nsystem_usec 2\n"})
    file = tmp_path / "textfiles/cgotel.prom"
    file.parent.mkdir()
    subprocess.run(
        [sys.executable, "-m", "cgotel", "snapshot", "--format", "prometheus", "--output", str(file)],
        env={**os.environ, **tree.environment},
        check=True,
    )
    with exposed(node_exporter, file.parent) as url, urllib.request.urlopen(url) as answer:
        found = samples_of(answer.read().decode())
    written = samples_of(file.read_text("utf-8"))
    assert found[("node_textfile_scrape_error", frozenset())] == 0
    assert {key: value for key, value in found.items() if not key[0].startswith("node_")} == written
    for path in (CONTAINER, hostile):
        assert any(("process_linux_cgroup", f"0::{path}") in labels for _, labels in written)
