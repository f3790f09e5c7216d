"""The real Telegraf with its own inputs.cgroup and cgotel on the same cgroups, in one run.

The native plugin is asked for every file of a cgroup, each by an input of its own: one that it
refuses then costs that file alone.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.lab.guest.cgroups import MOUNT, Cgroup
from tests.lab.guest.sweeps import raw
from tests.lab.guest.workloads import Ended
from tests.lab.project import TELEGRAF
from tests.peers.telegraf_process import Telegraf, execd, quoted
from tests.unit.outputs.parsed_lines import Line, Value

INTERVAL = "2s"
LIMIT_S = 150

pytestmark = [pytest.mark.timeout(300), pytest.mark.only_on("6.12")]
NO_LIMIT = 2**63 - 1
SETTINGS = f"""\
[collectors.cgroup]
pressure_averages = true
slow_interval = 0.1
[outputs.influx]
path_prefix = "{MOUNT}"
"""

# Without the key's name in the native plugin, or the default of all devices.
CALLED_OTHERWISE = {
    "pids.events.1": "pids.events.max",
    "pids.events.local.1": "pids.events.local.max",
    "io.weight.default": "io.weight",
    "cpuset.cpus.effective": "cpuset.cpus.effective_count",
    "cpuset.mems.effective": "cpuset.mems.effective_count",
    "cgroup.procs": "cgroup.procs.count",
}

# What docs/telegraf.md says that cgotel leaves out: switches, thread ids, and what nobody has asked for.
LEFT_OUT = re.compile(
    r"cgroup\.(threads|freeze|pressure)|cpu\.(idle|weight\.nice|max\.burst)|memory\.oom\.group"
    r"|cgroup\.stat\.nr_(dying_)?subsys_\w+|memory\.numa_stat\.(?!anon\.|file\.)\w+\.N\d+"
)

REFUSED = {"cgroup.controllers", "cgroup.type", "cpuset.cpus", "cpuset.cpus.partition", "cpuset.mems"}


@pytest.fixture
def settings(tmp_path: Path) -> str:
    """A configuration file that has everything switched on."""
    file = tmp_path / "cgotel.toml"
    file.write_text(SETTINGS)
    return str(file)


def native(cgroup: Cgroup) -> str:
    """Telegraf's own input, once for each file that can be read."""
    files = sorted(file.name for file in cgroup.path.iterdir() if file.is_file() and _readable(file))
    return "".join(
        f"[[inputs.cgroup]]\n  paths = {quoted(cgroup.path)}\n  files = {quoted(file)}\n" for file in files
    )


def _readable(file: Path) -> bool:
    return bool(file.stat().st_mode & 0o444)


def fields(lines: list[Line], measurement: str, cgroup: Cgroup) -> dict[str, Value]:
    """What a cgroup's latest lines say."""
    found: dict[str, Value] = {}
    for line in sorted(lines, key=lambda line: line.time_ns):
        if line.measurement == measurement and line.tags["path"] == str(cgroup.path):
            found |= line.fields
    return found


def kills(lines: list[Line], cgroup: Cgroup) -> list[Line]:
    """The events of OOM kills in a cgroup; the kernel's log may hold those of other tests."""
    events = [line for line in lines if line.tags.get("event") == "cgotel.oom.kill"]
    return [line for line in events if line.tags["path"] == str(cgroup.path)]


def both(lines: list[Line]) -> bool:
    """Whether there is a whole batch of cgotel, and some of the native plugin after two rounds."""
    of_cgotel = [line for line in lines if line.measurement == "cgotel_source"]
    rounds = {line.time_ns for line in lines if line.measurement == "cgroup"}
    return len(of_cgotel) >= 2 and len(rounds) >= 2


def test_cgotel_has_what_the_native_plugin_has_and_both_say_what_the_files_say(
    cgroup: Cgroup, disk: Path, tmp_path: Path, settings: str
) -> None:
    outer = cgroup.child("outer", cpu_max="50000 100000", memory_max="512M")
    leaf = outer.child("leaf", memory_max="256M", memory_high="200M", pids_max=50)
    workload = leaf.spawn()
    workload.grow(16)
    workload.write(disk, 2)
    workload.burn(0.1)
    leaf.write("cgroup.freeze", 1)  # so that amounts stand still
    leaf.await_events("cgroup.events", lambda events: events["frozen"] == 1)
    inputs = execd(config=settings) + native(leaf)
    with Telegraf(TELEGRAF, tmp_path / "both", {}, inputs, interval=INTERVAL, limit_s=LIMIT_S) as telegraf:
        before = raw(leaf.path)
        lines = telegraf.lines(both)
        after = raw(leaf.path)
        refused = {file for file in REFUSED if f"/{file}: unknown file format" in telegraf.log}
    ours, theirs = fields(lines, "cgotel_cgroup", leaf), fields(lines, "cgroup", leaf)

    wanted = {CALLED_OTHERWISE.get(f, f) for f in theirs if not LEFT_OUT.fullmatch(f)}
    unlimited = {field for field, value in theirs.items() if value == NO_LIMIT}
    assert wanted - unlimited <= ours.keys()
    assert unlimited.isdisjoint(ours)

    still = {field: number for field, number in before.items() if after.get(field) == number}
    for said in (ours, theirs):
        compared = [field for field in still.keys() & said.keys() if ".avg" not in field]
        for field in compared:
            # user and system together: the kernel cuts each of the three to whole microseconds
            cut = 1 if field == "cpu.stat.usage_usec" else 0
            assert still[field] - cut <= said[field] <= still[field], field
        assert len(compared) > 90

    assert refused == REFUSED
    assert any(field.startswith("io.stat.") for field in ours)
    assert ours["memory.effective_limit.owner"] == "self"
    assert ours["cpu.effective_limit.owner"] == outer.name
    assert (ours["cpuset.cpus.effective_count"], ours["cpuset.mems.effective_count"]) == (2, 2)


def test_an_oom_kill_arrives_as_an_event(cgroup: Cgroup, tmp_path: Path, settings: str) -> None:
    leaf = cgroup.child("leaf", memory_max="32M", memory_swap_max=0)
    workload = leaf.spawn()
    with Telegraf(
        TELEGRAF, tmp_path / "oom", {}, execd(config=settings), interval=INTERVAL, limit_s=LIMIT_S
    ) as telegraf:
        telegraf.lines(lambda lines: bool(fields(lines, "cgotel_cgroup", leaf)))
        with pytest.raises(Ended):
            workload.grow(64)
        lines = telegraf.lines(lambda lines: kills(lines, leaf))
        assert telegraf.errors == []
    assert {line.tags["severity"] for line in kills(lines, leaf)} == {"error"}
