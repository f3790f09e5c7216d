"""A real collectd over a host of files: every value is the kernel's number, under a fitting type."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest
from tests.peers.collectd_process import OWN, STOCK, Collectd, Row
from tests.peers.kernel_tree import (
    BOOTED_S,
    CONTAINER,
    CONTAINER_ID,
    MIB,
    SERVICE,
    SLICE,
    UNWATCHED,
    KernelTree,
)
from tests.peers.waiting import eventually

from cgotel.outputs.collectd.types import parse

BOX = f"cgotel-{CONTAINER_ID[:12]}"
WEB = "cgotel-web.service"
HEAVY = ("opentelemetry", "google.protobuf", "grpc", "pynvml", "psutil", "requests", "click")

# What the files of the tree say, in the unit of the type.
EXPECTED = {
    f"{BOX}/ps_cputime": {"user": 5_000_000, "syst": 2_500_000},
    f"{BOX}/derive-cpu-periods": {"value": 200},
    f"{BOX}/derive-cpu-throttled": {"value": 40},
    f"{BOX}/total_time_in_ms-cpu-throttled": {"value": 1_250},
    f"{BOX}/total_time_in_ms-cpu-throttled-local": {"value": 6_000},
    f"{BOX}/total_time_in_ms-cpu-throttled-by-system.slice": {"value": 4_750},
    f"{BOX}/gauge-cpu_weight": {"value": 79},
    f"{BOX}/gauge-cpu_effective_limit": {"value": 1.5},
    f"{BOX}/memory-used": {"value": 300 * MIB},
    f"{BOX}/memory-peak": {"value": 350 * MIB},
    f"{BOX}/memory-limit": {"value": 1024 * MIB},
    f"{BOX}/memory-effective_limit": {"value": 512 * MIB},
    f"{BOX}/memory-working_set": {"value": 240 * MIB},
    f"{BOX}/memory-anon": {"value": 180 * MIB},
    f"{BOX}/memory-slab_recl": {"value": 12288},
    f"{BOX}/memory-swap_used": {"value": 4096},
    f"{BOX}/cgotel_headroom-memory": {"value": 112 * MIB},
    f"{BOX}/vmpage_faults": {"minflt": 960, "majflt": 40},
    f"{BOX}/vmpage_action-refault-file": {"value": 7},
    f"{BOX}/derive-memory_event-high": {"value": 3},
    f"{BOX}/derive-memory_event_local-oom_kill": {"value": 1},
    f"{BOX}/total_time_in_ms-psi-cpu-some": {"value": 3_500},
    f"{BOX}/total_time_in_ms-psi-memory-full": {"value": 300},
    f"{BOX}/disk_octets-sda": {"read": 4096, "write": 8192},
    f"{BOX}/disk_ops-sda": {"read": 1, "write": 2},
    f"{BOX}/total_bytes-discard-sda": {"value": 0},
    f"{BOX}/gauge-io_max-sda-read_bps": {"value": 2097152},
    f"{BOX}/gauge-io_max-sda-write_iops": {"value": 120},
    f"{BOX}/gauge-pids": {"value": 17},
    f"{BOX}/derive-pids_event-max": {"value": 5},
    f"{BOX}/gauge-processes": {"value": 2},
    f"{BOX}/count-cgroups-live": {"value": 0},
    f"{BOX}/gauge-populated": {"value": 1},
    f"{WEB}/cgotel_headroom-pids": {"value": 61},
    f"{WEB}/gauge-cpu_limit": {"value": 0.5},
    f"{WEB}/gauge-pids_limit": {"value": 64},
    "cgotel-system.slice/memory-used": {"value": 400 * MIB},
    "cgotel-root/ps_cputime": {"user": 60_000_000, "syst": 30_000_000},
    "cgotel/memory-total": {"value": 8192 * MIB},
    "cgotel/memory-buffered": {"value": 32 * MIB},
    "cgotel/load": {"shortterm": 0.5, "midterm": 0.25, "longterm": 0.1},
    "cgotel/ps_state-blocked": {"value": 1},
    "cgotel/fork_rate": {"value": 51670},
    "cgotel/threads": {"value": 133},
    "cgotel/vmpage_action-oom_kill": {"value": 2},
    "cgotel/swap_io-out": {"value": 4},
    "cgotel/total_time_in_ms-psi-cpu-some": {"value": 536_955},
}

# Without a limit, or not there for this cgroup: no value, never a 0.
NOT_MEASURED = (
    f"{BOX}/memory-high",
    f"{BOX}/memory-swap_limit",
    f"{BOX}/gauge-pids_limit",
    f"{BOX}/gauge-io_max-sda-write_bps",
    f"{BOX}/gauge-cpu_limit",
    f"{WEB}/derive-cpu-throttled",
    "cgotel/total_time_in_ms-psi-cpu-full",
)


def measured(row: Row) -> Row:
    return {source: number for source, number in row.items() if source != "epoch"}


def test_values_are_those_of_the_files_over_several_intervals(tree: KernelTree, tmp_path: Path) -> None:
    with Collectd(tmp_path / "collectd", tree.environment) as collectd:
        rows = {name: collectd.rows(name, lambda rows: len(rows) >= 3) for name in EXPECTED}
        names = collectd.names()
        assert collectd.stop() == 0
    assert {name: measured(found[-1]) for name, found in rows.items()} == EXPECTED
    assert {measured(row).keys() == EXPECTED[name].keys() for name in EXPECTED for row in rows[name]} == {
        True
    }
    assert names >= EXPECTED.keys()
    assert names.isdisjoint(NOT_MEASURED)
    assert collectd.errors == []


def test_every_type_is_known_to_types_db(tree: KernelTree, tmp_path: Path) -> None:
    known = parse(Path(STOCK).read_text()) | parse(Path(OWN).read_text())
    with Collectd(tmp_path / "collectd", tree.environment, "PressureAverages true") as collectd:
        collectd.rows(f"{BOX}/percent-psi-cpu-some-avg10")
        types = {name.partition("/")[2].partition("-")[0] for name in collectd.names()}
    assert types <= known.keys()
    assert {"memory", "percent", "cgotel_headroom", "ps_cputime"} <= types


def test_what_changes_in_the_kernel_changes_in_collectd(tree: KernelTree, tmp_path: Path) -> None:
    with Collectd(tmp_path / "collectd", tree.environment) as collectd:
        collectd.rows(f"{WEB}/gauge-pids")
        tree.change(SERVICE, "pids.current", "3", "7")
        rows = collectd.rows(f"{WEB}/gauge-pids", lambda rows: rows[-1]["value"] == 7)
        tree.change(CONTAINER, "cpu.stat", "nr_periods 200", "nr_periods 950")
        collectd.rows(f"{BOX}/derive-cpu-periods", lambda rows: rows[-1]["value"] == 950)
    assert [row["value"] for row in rows if row["value"] not in (3, 7)] == []


def test_a_sweep_has_one_time_and_its_interval(tree: KernelTree, tmp_path: Path) -> None:
    with Collectd(tmp_path / "collectd", tree.environment, "Interval 0.25") as collectd:
        seen = collectd.observed("values", lambda records: len(records) >= 6)
        used = collectd.rows(f"{BOX}/memory-used", lambda rows: len(rows) >= 3)
        peak = collectd.rows(f"{BOX}/memory-peak", lambda rows: len(rows) >= len(used))
        pids = collectd.rows(f"{WEB}/gauge-pids", lambda rows: len(rows) >= len(used))
    stamps = [row["epoch"] for row in used]
    assert [row["epoch"] for row in peak][: len(stamps)] == stamps
    assert [row["epoch"] for row in pids][: len(stamps)] == stamps
    assert {record["interval"] for record in seen} == {0.25}
    metas = {record["instance"]: record["meta"] for record in seen}
    assert metas[CONTAINER_ID[:12]] == {"process.linux.cgroup": f"0::{CONTAINER}"}


def test_cgroups_come_and_go(tree: KernelTree, tmp_path: Path) -> None:
    with Collectd(tmp_path / "collectd", tree.environment, interval=0.2) as collectd:
        collectd.rows(f"{WEB}/gauge-pids")
        tree.add(f"{SLICE}/late\nname.service", {"pids.current": "5\n", "cpu.stat": "usage_usec 1\n"})
        eventually(lambda: [n for n in collectd.names() if "late" in n], 20, "the new cgroup is there")
        tree.remove(SERVICE)
        eventually(lambda: f"{WEB}/gauge-pids" not in collectd.names(), 20, "the ended one is forgotten")
        names = {name.partition("/")[0] for name in collectd.names()}
        assert collectd.stop() == 0
    [late] = [name for name in names if "late" in name]
    assert re.fullmatch(r"cgotel-system\.slice~late\?name\.service-[0-9a-f]{8}", late)
    assert collectd.errors == []


def test_an_oom_kill_is_a_notification(tree: KernelTree, tmp_path: Path) -> None:
    with Collectd(tmp_path / "collectd", tree.environment, interval=0.2) as collectd:
        collectd.rows(f"{BOX}/memory-used")
        tree.change(CONTAINER, "memory.events.local", "oom_kill 1", "oom_kill 3")
        [seen, *_] = collectd.observed("notifications")
        log = collectd.says("severity = FAILURE")
    assert seen["plugin"] == "cgotel"
    assert seen["plugin_instance"] == CONTAINER_ID[:12]
    assert (seen["type"], seen["type_instance"], seen["severity"]) == ("total_events", "cgotel.oom.kill", 1)
    assert seen["message"] == f"the kernel's OOM killer killed 2 processes of {CONTAINER}"
    assert seen["meta"]["cgotel.oom.kills"] == 2
    assert seen["meta"]["container.id"] == CONTAINER_ID
    assert seen["time"] > BOOTED_S
    assert seen["message"] in log


@pytest.mark.parametrize(
    ("lines", "fault"),
    [
        (['Interval "ten"'], "option Interval: must be one number, got 'ten'"),
        (["Interval 0.01"], "option Interval: Expected `float` >= 0.1"),
        (["MaxDepth 1.5"], "option MaxDepth: must be one whole number, got 1.5"),
        (["MaxDepth -1"], "option MaxDepth: Expected `int` >= 0"),
        (["Include 5"], "option Include: must be one or more strings in quotes, got 5.0"),
        (['Include "system.slice"'], "option Include: 'system.slice' must begin with '/'"),
        (['Kinds "containers"'], "option Kinds: no kind 'containers'"),
        (['PressureAverages "yes"'], "option PressureAverages: must be true or false, got 'yes'"),
        (["Intervall 5"], "option Intervall: unknown; did you mean Interval?"),
        (["Interval 5", "Interval 6"], "option Interval: stands there twice"),
        (["<Include>", "Path 1", "</Include>"], "option Include: is no block"),
        (['Config "/nonexistent.toml"'], "option Config: /nonexistent.toml: cannot be read"),
        (["Interval 1 2"], "option Interval: must be one number, got 1.0 2.0"),
    ],
)
def test_a_bad_option_is_named_and_collectd_goes_on(
    lines: list[str], fault: str, tree: KernelTree, tmp_path: Path
) -> None:
    with Collectd(tmp_path / "collectd", tree.environment, *lines, interval=0.2) as collectd:
        log = collectd.says("cgotel stays off")
        collectd.rows("uptime/uptime", lambda rows: len(rows) >= 2)
        assert collectd.names() == set()
        assert collectd.stop() == 0
    assert fault in log
    assert collectd.check() == 0


def test_without_a_block_the_defaults_hold(tree: KernelTree, tmp_path: Path) -> None:
    with Collectd(tmp_path / "collectd", tree.environment, block=False) as collectd:
        assert measured(collectd.rows(f"{BOX}/memory-used")[0]) == {"value": 300 * MIB}


def test_options_choose_what_is_read(tree: KernelTree, tmp_path: Path) -> None:
    options = ('Kinds "container"', "Host false", "Notifications false")
    with Collectd(tmp_path / "collectd", tree.environment, *options, interval=0.2) as collectd:
        collectd.rows(f"{BOX}/memory-used")
        tree.change(CONTAINER, "memory.events.local", "oom_kill 1", "oom_kill 3")
        collectd.rows(f"{BOX}/derive-memory_event_local-oom_kill", lambda rows: rows[-1]["value"] == 3)
        assert {name.partition("/")[0] for name in collectd.names()} == {BOX, "cgotel-agent"}
        assert collectd.stop() == 0
    assert "severity = FAILURE" not in collectd.log


def test_a_configuration_file_is_read_and_options_go_before_it(tree: KernelTree, tmp_path: Path) -> None:
    file = tmp_path / "cgotel.toml"
    file.write_text(
        f"{UNWATCHED}[collectors.cgroup]\n"
        'kinds = ["service"]\nmax_depth = 1\n[collectors.host]\nenabled = false\n'
    )
    with Collectd(tmp_path / "collectd", tree.environment, f'Config "{file}"', "MaxDepth 9") as collectd:
        collectd.rows(f"{WEB}/gauge-pids")
        found = {name.partition("/")[0] for name in collectd.names()}
        kept = {name for name in collectd.names() if name.startswith("cgotel/")}
    assert BOX not in found
    assert all("psi" in name for name in kept)


@pytest.mark.parametrize(
    ("types", "missing", "kept", "told"),
    [
        ((STOCK,), f"{BOX}/cgotel_headroom-memory", f"{BOX}/memory-used", "name cgotel.types.db in TypesDB"),
        ((OWN,), f"{BOX}/memory-used", f"{BOX}/cgotel_headroom-memory", "name collectd's own file"),
    ],
)
def test_a_missing_types_db_costs_its_values_only(
    types: tuple[str, ...], missing: str, kept: str, told: str, tree: KernelTree, tmp_path: Path
) -> None:
    with Collectd(tmp_path / "collectd", tree.environment, types=types, interval=0.2) as collectd:
        collectd.rows(kept, lambda rows: len(rows) >= 3)
        assert missing not in collectd.names()
        assert collectd.stop() == 0
    assert collectd.log.count("no TypesDB holds") == 1
    assert told in collectd.log


def test_a_pipe_in_the_place_of_a_file_holds_nobody(tree: KernelTree, tmp_path: Path) -> None:
    with Collectd(tmp_path / "collectd", tree.environment, interval=0.2) as collectd:
        collectd.rows(f"{WEB}/gauge-pids")
        tree.path(f"{SLICE}/stuck.service").mkdir()
        os.mkfifo(tree.path(f"{SLICE}/stuck.service", "cpu.stat"))
        before = len(collectd.rows(f"{WEB}/gauge-pids"))
        collectd.rows(f"{WEB}/gauge-pids", lambda rows: len(rows) >= before + 5)
        assert collectd.stop(5) == 0


def test_a_restart_goes_on_under_the_same_names(tree: KernelTree, tmp_path: Path) -> None:
    with Collectd(tmp_path / "collectd", tree.environment, interval=0.2) as collectd:
        before = len(collectd.rows(f"{BOX}/memory-used", lambda rows: len(rows) >= 2))
        names = collectd.names()
        assert collectd.check() == 0
        assert collectd.stop() == 0
        collectd.start()
        collectd.rows(f"{BOX}/memory-used", lambda rows: len(rows) >= before + 2)
        eventually(lambda: collectd.names() >= names, 20, "every value is there again")
        assert collectd.stop() == 0
    assert collectd.errors == []


def test_a_hangup_ends_collectd_at_once_and_a_start_goes_on(tree: KernelTree, tmp_path: Path) -> None:
    """It has no reload (docs/collectd.md): whoever sends SIGHUP has to start it again."""
    with Collectd(tmp_path / "collectd", tree.environment, interval=0.2) as collectd:
        before = len(collectd.rows(f"{BOX}/memory-used", lambda rows: len(rows) >= 2))
        names = collectd.names()
        collectd.signal(signal.SIGHUP)
        assert collectd.ended() == -signal.SIGHUP
        collectd.start()
        collectd.rows(f"{BOX}/memory-used", lambda rows: len(rows) >= before + 2)
        eventually(lambda: collectd.names() >= names, 20, "every value is there again")
        assert collectd.stop() == 0


def test_a_flush_disturbs_nothing(tree: KernelTree, tmp_path: Path) -> None:
    with Collectd(tmp_path / "collectd", tree.environment, interval=0.2) as collectd:
        before = len(collectd.rows(f"{BOX}/memory-used"))
        collectd.signal(signal.SIGUSR1)
        collectd.rows(f"{BOX}/memory-used", lambda rows: len(rows) >= before + 3)
        assert collectd.stop() == 0
    assert collectd.errors == []


def test_ten_sweeps_a_second(tree: KernelTree, tmp_path: Path) -> None:
    with Collectd(tmp_path / "collectd", tree.environment, "Interval 0.1", interval=10) as collectd:
        rows = collectd.rows(f"{BOX}/memory-used", lambda rows: len(rows) >= 20)
        assert collectd.stop() == 0
    stamps = [row["epoch"] for row in rows]
    assert stamps == sorted(set(stamps))
    assert "too old" not in collectd.log
    assert collectd.errors == []


def test_a_python_without_cgotel_is_told_and_collectd_goes_on(tree: KernelTree, tmp_path: Path) -> None:
    alone = tmp_path / "alone"
    alone.mkdir()
    alone.joinpath("cgotel_collectd.py").symlink_to(Path(OWN).with_name("cgotel_collectd.py"))
    paths = (str(alone),)
    with Collectd(tmp_path / "collectd", tree.environment, paths=paths, interval=0.2) as collectd:
        log = collectd.says("cgotel: stays off")
        collectd.rows("uptime/uptime", lambda rows: len(rows) >= 2)
        assert collectd.stop() == 0
    assert "cannot load it: ModuleNotFoundError: No module named 'cgotel'" in log
    assert log.count("stays off") == 1
    assert "cgotel collectd-config" in log


def test_a_package_of_another_python_is_told(tree: KernelTree, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    (broken / "msgspec").mkdir(parents=True)
    (broken / "msgspec/__init__.py").write_text("from msgspec import _core\n")
    here = [path for path in _paths() if not Path(path, "msgspec").exists()]
    with Collectd(tmp_path / "collectd", tree.environment, paths=(*here, str(broken))) as collectd:
        log = collectd.says("cgotel: stays off")
        assert collectd.stop() == 0
    assert "cannot load it: ImportError" in log


def test_nothing_heavy_is_imported(tree: KernelTree, tmp_path: Path) -> None:
    with Collectd(tmp_path / "collectd", tree.environment, interval=0.2) as collectd:
        collectd.rows(f"{BOX}/memory-used", lambda rows: len(rows) >= 2)
        before = len(collectd.observed("modules"))
        modules = collectd.observed("modules", lambda lists: len(lists) > before)[-1]
    assert "cgotel.sweeper" in modules
    assert [m for m in modules if m in HEAVY or m.startswith(tuple(f"{h}." for h in HEAVY))] == []


def test_a_host_without_cgroup_v2_still_gives_the_host(tree: KernelTree, tmp_path: Path) -> None:
    environment = {**tree.environment, "HOST_SYS": str(tmp_path)}
    del environment["HOST_CGROUP"]
    with Collectd(tmp_path / "collectd", environment) as collectd:
        collectd.rows("cgotel/memory-total")
        collectd.rows("cgotel-agent/gauge-sweep_points")
        assert {name.partition("/")[0] for name in collectd.names()} == {"cgotel", "cgotel-agent"}
    assert "cgroup: absent" in collectd.log


def test_a_thousand_cgroups(tree: KernelTree, tmp_path: Path) -> None:
    for number in range(1_000):
        tree.add_like(f"{SLICE}/w{number:04}.service", CONTAINER)
    with Collectd(tmp_path / "collectd", tree.environment, "Interval 5", writes=False) as collectd:
        wanted = {f"cgotel-w{number:04}.service/memory-used" for number in range(1_000)}
        eventually(lambda: collectd.names() >= wanted, 40, "every cgroup's values")
        total = len(collectd.names())
        _await_sweep(collectd)
        before_s = _cpu_s(collectd.pid)
        for _ in range(2):
            _await_sweep(collectd)
        cpu_s = (_cpu_s(collectd.pid) - before_s) / 2
        print(f"{total} values, {cpu_s:.2f} s of CPU a sweep, {_rss_mib(collectd.pid)} MiB resident")
        assert collectd.stop() == 0
    assert collectd.errors == []


def _await_sweep(collectd: Collectd) -> None:
    """Wait for the next sweep to arrive, by a value that is another one every time."""
    name = "cgotel-agent/gauge-sweep_seconds"
    before = collectd.value(name)
    eventually(lambda: collectd.value(name) != before, 30, "one more sweep")


def _paths() -> tuple[str, ...]:
    from tests.peers.collectd_process import module_paths

    return module_paths()


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _rss_mib(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") // MIB
