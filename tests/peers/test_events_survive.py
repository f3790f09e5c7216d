"""No verdict is lost and none is told twice: a Collector that is down, an agent that is killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.peers.agent_process import PROTOCOLS, Agent, otlp_to
from tests.peers.collector_process import Collector
from tests.peers.received import Record
from tests.peers.waiting import eventually

from cgotel.kernel.roots import Roots

EXIT = "cgotel.container.exit"
SETTINGS = "[restarts]\nsettle = 0.3\n[watchers.kernel_log]\nhistory = false\n"


@pytest.fixture
def cgroup() -> Iterator[Path]:
    """A cgroup of this machine for a process to end in."""
    mount = Roots.discover().cgroup
    assert mount is not None, "the suite needs cgroup v2"
    path = Path(mount, f"cgotel-test-{os.getpid()}")
    path.mkdir()
    yield path
    if path.exists():
        path.rmdir()


def end_in(cgroup: Path) -> None:
    """A process lives in a cgroup, and is killed."""
    with subprocess.Popen(["sleep", "1000"]) as process:
        (cgroup / "cgroup.procs").write_text(str(process.pid))
        process.kill()


def agent_with(folder: Path, environment: dict[str, str]) -> Agent:
    folder.mkdir(exist_ok=True)
    (folder / "cgotel.toml").write_text(SETTINGS)
    return Agent(folder, {**environment, "STATE_DIRECTORY": str(folder / "state")}, "-v")


def incidents(folder: Path, what: str) -> list[dict[str, object]]:
    done = subprocess.run(
        [sys.executable, "-m", "cgotel", "incidents", what, "--json"],
        env={**os.environ, "STATE_DIRECTORY": str(folder / "state")},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_verdict_outlives_the_receivers_absence_and_the_agents_death(
    collector: Collector, cgroup: Path, tmp_path: Path, protocol: str
) -> None:
    folder, path = tmp_path / "agent", f"/{cgroup.name}"
    environment = otlp_to(collector, protocol)

    def ends(records: list[Record]) -> list[Record]:
        return [
            r
            for r in records
            if r.event_name == EXIT and path in str(r.attributes.get("process.linux.cgroup"))
        ]

    collector.stop()
    with agent_with(folder, environment) as agent:
        agent.says("watcher cgroup_events is at work")
        end_in(cgroup)
        eventually(lambda: incidents(folder, path), 60, "the end is judged")
        os.kill(agent.pid, 9)
        agent.wait()

    with agent_with(folder, environment) as agent:
        agent.says("watcher cgroup_events is at work")
        collector.start()
        [record] = collector.logs(ends, timeout_s=90)[-1:]
        assert record.attributes["log.record.uid"].startswith(f"exit:cgroup:{path}@")
        agent.terminate()
        assert agent.wait() == 0

    with agent_with(folder, environment) as agent:
        collector.metrics(lambda points: len(points) > 0)
        agent.says("watcher cgroup_events is at work")
        agent.terminate()
        assert agent.wait() == 0
    assert len(ends(collector.logs())) == 1
