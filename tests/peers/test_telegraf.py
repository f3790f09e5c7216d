"""The real Telegraf runs `cgotel telegraf`: what arrives, how it is asked, how both end."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections import Counter
from pathlib import Path

import psutil
import pytest
from tests.peers import telegraf as telegraf_build
from tests.peers.agent_process import INTERVAL_MS, Agent
from tests.peers.collector_process import Collector
from tests.peers.kernel_tree import (
    CONTAINER,
    CONTAINER_ID,
    HOST_NAME,
    SERVICE,
    SLICE,
    UNWATCHED,
    KernelTree,
)
from tests.peers.pins import ROOT
from tests.peers.telegraf_process import LIMIT_S, Telegraf, cgroups, execd, quoted
from tests.peers.waiting import eventually, until_read
from tests.unit.outputs.parsed_lines import Line, parsed

NO_LIMIT = 2**63 - 1
AVERAGES = f"{UNWATCHED}[collectors.cgroup]\npressure_averages = true\n"


@pytest.fixture(scope="session")
def executable() -> Path:
    """The executable, built from its Go module."""
    return telegraf_build.binary()


@pytest.fixture
def telegraf(executable: Path, tmp_path: Path, tree: KernelTree) -> Telegraf:
    """A Telegraf that asks by a newline every 200 ms; not yet started."""
    return Telegraf(executable, tmp_path / "telegraf", tree.environment, execd())


def test_what_the_files_say_arrives_at_every_interval(telegraf: Telegraf, tree: KernelTree) -> None:
    with telegraf:
        before = "314572800"
        for after in ("111111111", "222222222", "333333333"):
            tree.change(CONTAINER, "memory.current", before, after)
            telegraf.lines(lambda lines, now=int(after): now in currents(lines))
            before = after
        lines = cgroups(telegraf.received(), CONTAINER)
        assert telegraf.errors == []
    assert list(dict.fromkeys(currents(lines)))[-3:] == [111111111, 222222222, 333333333]
    assert len({line.time_ns for line in lines}) == len(lines)
    last = lines[-1]
    assert last.tags["container_id"] == CONTAINER_ID
    assert last.fields["memory.effective_limit"] == 512 << 20
    assert last.fields["memory.effective_limit.owner"] == SLICE
    assert last.fields["cpu.pressure.some.total"] == 3_500_000
    assert last.fields["memory.events.oom_kill"] == 1
    assert (last.fields["cpu.effective_limit"], last.fields["cpu.effective_limit.owner"]) == (1.5, SLICE)


def currents(lines: list[Line]) -> list[object]:
    return [line.fields.get("memory.current") for line in cgroups(lines, CONTAINER)]


def test_every_field_of_the_native_plugin_is_there_with_its_value(
    executable: Path, tmp_path: Path, tree: KernelTree
) -> None:
    """All but what stands for "no limit", in Telegraf's own plugin the largest number there is."""
    mount = str(tree.path("/")).rstrip("/")
    config = tmp_path / "cgotel.toml"
    config.write_text(f"{AVERAGES}[outputs.influx]\npath_prefix = '{mount}'\n")
    inputs = execd(config=str(config)) + native(tree, "memory.*", "cpu.*", "pids.*", "cgroup.stat")
    with Telegraf(executable, tmp_path / "both", tree.environment, inputs) as telegraf:
        lines = telegraf.lines(lambda lines: {"cgroup", "cgotel_cgroup"} <= measurements(lines))
        assert telegraf.errors == []
    ours, theirs = fields(lines, "cgotel_cgroup"), fields(lines, "cgroup")
    # It takes the line "max 5" of pids.events for two numbers without names.
    assert theirs.pop((mount + CONTAINER, "pids.events.1")) == ours[mount + CONTAINER, "pids.events.max"]
    assert len(theirs) > 60
    expected = {key: value for key, value in theirs.items() if value != NO_LIMIT}
    assert {key: ours.get(key) for key in expected} == expected
    assert not (theirs.keys() - expected.keys()) & ours.keys()


def test_an_idle_device_costs_the_native_plugin_its_io_and_cgotel_nothing(
    executable: Path, tmp_path: Path, tree: KernelTree
) -> None:
    inputs = execd() + native(tree, "io.stat")
    with Telegraf(executable, tmp_path / "both", tree.environment, inputs) as telegraf:
        lines = telegraf.lines(lambda lines: "cgotel_cgroup" in measurements(lines))
        telegraf.says("io.stat: unknown file format")
    assert fields(lines, "cgotel_cgroup")[CONTAINER, "io.stat.8:0.rbytes"] == 4096
    assert "cgroup" not in measurements(lines)


def native(tree: KernelTree, *files: str) -> str:
    """Telegraf's own input for these files of the tree."""
    paths = quoted(*(tree.path(cgroup) for cgroup in (CONTAINER, SERVICE, SLICE)))
    return f"[[inputs.cgroup]]\n  paths = {paths}\n  files = {quoted(*files)}\n"


def measurements(lines: list[Line]) -> set[str]:
    return {line.measurement for line in lines}


def fields(lines: list[Line], measurement: str) -> dict[tuple[str, str], object]:
    """Values by path and field."""
    return {
        (line.tags["path"], field): value
        for line in lines
        if line.measurement == measurement
        for field, value in line.fields.items()
    }


@pytest.mark.parametrize("mode", ["STDIN", "SIGHUP", "SIGUSR1", "SIGUSR2"])
def test_every_way_of_asking(executable: Path, tmp_path: Path, tree: KernelTree, mode: str) -> None:
    with Telegraf(executable, tmp_path / mode, tree.environment, shielded(execd(mode))) as telegraf:
        telegraf.lines(lambda lines: len(cgroups(lines, SERVICE)) >= 3)
        assert telegraf.errors == []
        assert telegraf.end() == 0


def shielded(inputs: str) -> str:
    """The same input with the shell in front that keeps signals from Python while it starts."""
    return inputs.replace(
        "command = [", "command = ['sh', '-c', 'trap \"\" HUP USR1 USR2; exec \"$@\"', 'cgotel', ", 1
    )


def test_an_interval_of_its_own(executable: Path, tmp_path: Path, tree: KernelTree) -> None:
    inputs = execd("none", ("--interval", "0.1"))
    with Telegraf(executable, tmp_path / "none", tree.environment, inputs) as telegraf:
        telegraf.lines(lambda lines: len(cgroups(lines, SERVICE)) >= 3)
        assert telegraf.errors == []
        assert telegraf.end() == 0


def test_a_child_that_died_is_started_again(telegraf: Telegraf) -> None:
    with telegraf:
        telegraf.lines()
        first = telegraf.child()
        first.kill()
        telegraf.says("Restarting in 500ms")
        seen = len(telegraf.received())
        telegraf.lines(lambda lines: len(lines) > seen)
        assert telegraf.child().pid != first.pid


def test_the_end_of_telegraf_is_the_end_of_the_child_and_nothing_is_lost(telegraf: Telegraf) -> None:
    with telegraf:
        telegraf.lines()
        child = telegraf.child()
        assert telegraf.end() == 0
        assert not psutil.pid_exists(child.pid)
        by_time = Counter(line.time_ns for line in telegraf.received())
    assert len(set(by_time.values())) == 1  # every batch has all of its lines
    assert telegraf.errors == []


def test_a_reload_starts_a_new_child(telegraf: Telegraf) -> None:
    with telegraf:
        telegraf.lines()
        first = telegraf.child().pid
        telegraf.reload()
        eventually(lambda: not psutil.pid_exists(first), LIMIT_S, "the first child ends")
        seen = len(telegraf.received())
        telegraf.lines(lambda lines: len(lines) > seen)
        assert telegraf.errors == []


def test_telegrafs_own_test_shows_one_batch(telegraf: Telegraf) -> None:
    lines = telegraf.tested(wait_s=2)
    assert len(cgroups(lines, CONTAINER)) >= 1
    assert telegraf.errors == []


def test_names_and_owners_of_any_kind_pass_its_parser(telegraf: Telegraf, tree: KernelTree) -> None:
    hostile = (
        'a"b\\c\nd{e}',
        "a, b=c\\",
        "\\,",
        "\\\\ x",
        "日本\\\\,",
        "dev-\\x2dnull",
        "#x",
        "  ",
        "é" * 100,
    )
    for name in hostile:
        tree.add(f"/{name}", {"memory.max": "4096\n", "memory.current": "1\n"})
        tree.add(f"/{name}/below", {"cpu.stat": "usage_usec 3\nuser_usec 1\nsystem_usec 2\n"})
    once = [sys.executable, "-m", "cgotel", "telegraf", "--once"]
    done = subprocess.run(once, env=telegraf.environment, capture_output=True, text=True, check=True)
    written = {line.tags["path"]: line for line in parsed(done.stdout) if line.measurement == "cgotel_cgroup"}
    with telegraf:
        telegraf.lines(lambda lines: any(line.measurement == "cgotel_source" for line in lines))
        lines = [line for line in telegraf.received() if line.measurement == "cgotel_cgroup"]
        assert telegraf.errors == []
    arrived = {line.tags["path"]: line for line in lines}
    assert arrived.keys() == written.keys()
    assert len(arrived) >= 2 * len(hostile)
    for path, line in arrived.items():
        assert line.tags == written[path].tags
        owner = "memory.effective_limit.owner"
        assert line.fields.get(owner) == written[path].fields.get(owner)


def test_a_telegraf_that_stops_reading_gets_whole_batches_again(
    executable: Path, tmp_path: Path, tree: KernelTree
) -> None:
    config = tmp_path / "cgotel.toml"
    config.write_text(f"{UNWATCHED}[outputs.influx]\nwrite_timeout = 0.01\n")
    inputs = execd("none", ("--interval", "0.1"), str(config))
    with Telegraf(executable, tmp_path / "slow", tree.environment, inputs) as telegraf:
        telegraf.lines()
        telegraf.hang()
        for _ in range(40):  # the pipe holds 64 KiB, some ten batches
            until_read(tree.path(CONTAINER, "memory.current"))
        telegraf.go_on()
        telegraf.lines(lambda lines: dropped(lines) > 0)
        assert telegraf.end() == 0
        assert not [error for error in telegraf.errors if "pars" in error]
        by_time = Counter(line.time_ns for line in telegraf.received())
    assert len(set(by_time.values())) == 1


def dropped(lines: list[Line]) -> int:
    return max((int(line.fields.get("cgotel.influx.dropped_batches", 0)) for line in lines), default=0)


def test_through_its_opentelemetry_output_into_the_collector(
    executable: Path, tmp_path: Path, tree: KernelTree, collector: Collector
) -> None:
    address = collector.grpc_endpoint.removeprefix("http://")
    outputs = f'[[outputs.opentelemetry]]\n  service_address = "{address}"\n'
    with Telegraf(executable, tmp_path / "otel", tree.environment, execd(), outputs) as telegraf:
        points = collector.metrics(
            lambda points: any(point.name == "cgotel_cgroup_memory.current" for point in points)
        )
        assert telegraf.end() == 0
    values = {
        point.value
        for point in points
        if point.name == "cgotel_cgroup_memory.current" and point.attributes.get("path") == CONTAINER
    }
    assert values == {300 << 20}


@pytest.mark.parametrize(
    ("file", "places"),
    [
        ("cgotel.conf", {}),
        ("cgotel-container.conf", {"HOST_PROC": "proc", "HOST_SYS": "sys", "HOST_ETC": "etc"}),
    ],
)
def test_the_configurations_work_as_they_stand(
    executable: Path, tmp_path: Path, tree: KernelTree, file: str, places: dict[str, str]
) -> None:
    """But for where cgotel is installed, and where the host's trees are mounted."""
    inputs = (ROOT / "telegraf" / file).read_text("utf-8")
    assert '"/opt/cgotel/bin/cgotel"' in inputs
    inputs = inputs.replace("/opt/cgotel/bin/cgotel", str(Path(sys.executable).with_name("cgotel")))
    environment = {} if places else tree.environment
    for variable, place in places.items():
        assert f"{variable}=/host/{place}" in inputs
        inputs = inputs.replace(f"/host/{place}", str(tree.path("/").parent / place))
    with Telegraf(executable, tmp_path / "telegraf", environment, inputs) as telegraf:
        lines = telegraf.lines(lambda lines: "cgotel_source" in measurements(lines))
        assert telegraf.errors == []
    [host] = {line.tags["host_name"] for line in lines if line.measurement == "cgotel_host"}
    assert host == HOST_NAME


def test_with_types_by_way_of_otlp(executable: Path, tmp_path: Path, tree: KernelTree) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    inputs = (ROOT / "telegraf/opentelemetry.conf").read_text("utf-8")
    assert '"127.0.0.1:4317"' in inputs
    inputs = inputs.replace("127.0.0.1:4317", address)
    otlp = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{address}",
        "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
        "OTEL_METRIC_EXPORT_INTERVAL": str(INTERVAL_MS),
    }
    with (
        Telegraf(executable, tmp_path / "telegraf", {}, inputs) as telegraf,
        Agent(tmp_path / "agent", {**tree.environment, **otlp}),
    ):
        lines = telegraf.lines(lambda lines: "container.cpu.time" in measurements(lines))
    times = [line for line in lines if line.measurement == "container.cpu.time"]
    modes = {
        line.tags["cpu.mode"]: line.fields for line in times if line.tags["container.id"] == CONTAINER_ID
    }
    assert {mode: fields["counter"] for mode, fields in modes.items()} == {"user": 5.0, "system": 2.5}


def test_an_event_is_a_measurement_of_its_own(telegraf: Telegraf, tree: KernelTree) -> None:
    with telegraf:
        telegraf.lines()
        tree.change(CONTAINER, "memory.events.local", "oom_kill 1", "oom_kill 4")
        lines = telegraf.lines(lambda lines: "cgotel_event" in measurements(lines))
        assert telegraf.errors == []
    [event] = [line for line in lines if line.measurement == "cgotel_event"]
    assert (event.tags["event"], event.tags["severity"]) == ("cgotel.oom.kill", "error")
    assert event.tags["path"] == CONTAINER
    assert event.fields["cgotel.oom.kills"] == 3
    assert event.fields["body"] == f"the kernel's OOM killer killed 3 processes of {CONTAINER}"
