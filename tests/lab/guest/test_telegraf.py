"""What Telegraf would read is what the files say: real memory, io and pids controllers, a real OOM kill."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.lab.guest.cgroups import Cgroup
from tests.lab.guest.sweeps import raw
from tests.lab.guest.workloads import Ended

_NUMBER = re.compile(r"([^,= ]+)=(-?[0-9.e+-]+)i?(?=[, ])")


class Child:
    """`cgotel telegraf`, asked by a newline."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def batch(self) -> list[str]:
        """The lines of one sweep; the last one is of its sources."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        lines = [self.line()]
        while not lines[-1].startswith("cgotel_source "):
            lines.append(self.line())
        return lines

    def line(self) -> str:
        """The next line."""
        assert self._process.stdout is not None
        return self._process.stdout.readline()


@contextmanager
def telegraf() -> Iterator[Child]:
    """A running child; it ends by the end of its standard input."""
    command = [sys.executable, "-m", "cgotel", "telegraf"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield Child(process)
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait() == 0


def numbers(lines: list[str], cgroup: Cgroup) -> dict[str, float]:
    """The fields of a cgroup's own line that are numbers; its name has nothing that is escaped."""
    [line] = [
        line for line in lines if f",path={cgroup.name}," in line and ",cgroup_limit_owner=" not in line
    ]
    return {key: float(value) for key, value in _NUMBER.findall(line.partition(" ")[2])}


def test_every_field_lies_between_what_the_files_said(cgroup: Cgroup, disk: Path) -> None:
    leaf = cgroup.child("leaf", memory_max="512M", memory_high="256M", cpu_max="50000 100000", pids_max=50)
    workload = leaf.spawn()
    workload.grow(16)
    workload.write(disk, 2)
    workload.burn(0.1)
    with telegraf() as child:
        before = raw(leaf.path)
        fields = numbers(child.batch(), leaf)
        after = raw(leaf.path)
    compared = fields.keys() & before.keys() & after.keys()
    for field in compared:
        low, high = sorted((before[field], after[field]))
        # user and system together: the kernel cuts each of the three to whole microseconds
        cut = 1 if field == "cpu.stat.usage_usec" else 0
        assert low - cut <= fields[field] <= high, field
    assert len(compared) > 70
    assert {"cpu.stat.usage_usec", "memory.events.oom_kill", "pids.max", "memory.stat.anon"} <= compared
    assert (fields["cpu.max.0"], fields["cpu.max.1"]) == (50000, 100000)
    assert any(field.startswith("io.stat.") for field in compared)


def test_what_an_ancestors_quota_costs_has_its_name(cgroup: Cgroup) -> None:
    outer = cgroup.child("outer", cpu_max="5000 100000")
    inner = outer.child("inner")
    inner.spawn().burn(0.1)
    with telegraf() as child:
        lines = child.batch()
    [line] = [line for line in lines if f",path={inner.name}," in line and ",cgroup_limit_owner=" in line]
    assert f",cgroup_limit_owner={outer.name} cpu.stat.ancestor.throttled_usec=" in line
    assert float(_NUMBER.findall(line.partition(" ")[2])[0][1]) > 0


def test_an_oom_kill_is_an_event(cgroup: Cgroup) -> None:
    leaf = cgroup.child("leaf", memory_max="32M", memory_swap_max=0)
    workload = leaf.spawn()
    with telegraf() as child:
        child.batch()
        with pytest.raises(Ended):
            workload.grow(64)
        lines = child.batch()
        while not (told := [line for line in lines if _is_kill(line, leaf)]):
            lines.append(child.line())
    assert ",severity=error," in told[0]
    assert "the kernel's OOM killer " in told[0]


def _is_kill(line: str, cgroup: Cgroup) -> bool:
    return line.startswith("cgotel_event,event=cgotel.oom.kill,") and f",path={cgroup.name}," in line
