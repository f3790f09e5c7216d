"""collectd over this machine's own kernel: each value lies between two reads of its file."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.peers.collectd_process import Collectd

from cgotel.kernel.roots import Roots


def _total_ms(file: Path) -> int:
    """The total of a pressure file's first line, some, in milliseconds."""
    return int(file.read_text().split()[4].removeprefix("total=")) // 1000


def _user_usec(file: Path) -> int:
    return int(dict(line.split() for line in file.read_text().splitlines())["user_usec"])


@pytest.fixture
def mount() -> Path:
    found = Roots.discover({}).cgroup
    assert found is not None, "no cgroup v2 hierarchy is mounted: the suite needs one"
    return Path(found)


def test_numbers_lie_between_two_reads_of_the_kernels_files(mount: Path, tmp_path: Path) -> None:
    files = {
        "cgotel-root/total_time_in_ms-psi-cpu-some": (mount / "cpu.pressure", _total_ms, "value"),
        "cgotel-root/total_time_in_ms-psi-memory-some": (mount / "memory.pressure", _total_ms, "value"),
        "cgotel-root/ps_cputime": (mount / "cpu.stat", _user_usec, "user"),
        "cgotel/total_time_in_ms-psi-cpu-some": (Path("/proc/pressure/cpu"), _total_ms, "value"),
    }
    before = {name: read(file) for name, (file, read, _) in files.items()}
    with Collectd(tmp_path / "collectd", {}, "MaxDepth 1") as collectd:
        rows = {name: collectd.rows(name, lambda rows: len(rows) >= 3) for name in files}
        assert collectd.stop() == 0
    after = {name: read(file) for name, (file, read, _) in files.items()}
    for name, (_, _, source) in files.items():
        numbers = [before[name], *(row[source] for row in rows[name]), after[name]]
        assert numbers == sorted(numbers), name
    assert collectd.errors == []
