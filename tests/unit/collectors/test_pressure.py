"""The host's pressure: seconds and shares, never the CPU's `full`, and PSI that is not there."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cgotel.collectors.pressure import PressureCollector, PressureConfig
from cgotel.contract import State, Tick, Unavailable
from cgotel.identity.host import host_entity
from cgotel.kernel.roots import Roots
from cgotel.model import Reading

SOME = "some avg10=84.69 avg60=42.68 avg300=12.94 total={some}\n"
FULL = "full avg10=0.38 avg60=0.62 avg300=0.48 total={full}\n"

FILES = {
    "cpu": SOME.format(some=79146990) + FULL.format(full=0),
    "memory": SOME.format(some=12351871) + FULL.format(full=9811581),
    "io": SOME.format(some=1) + FULL.format(full=0),
    "irq": FULL.format(full=123456),
}

Start = Callable[..., PressureCollector]


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    (tmp_path / "proc/pressure").mkdir(parents=True)
    for name, content in FILES.items():
        (tmp_path / "proc/pressure" / name).write_text(content)
    (tmp_path / "proc/stat").write_text("btime 1796097889\n")
    return tmp_path / "proc"


@pytest.fixture
def start(proc: Path) -> Iterator[Start]:
    started: list[PressureCollector] = []

    def start(averages: bool = False, roots: Roots | None = None) -> PressureCollector:
        chosen = roots or Roots(str(proc), str(proc.parent / "sys"), None)
        collector = PressureCollector(PressureConfig(averages=averages), chosen)
        collector.start()
        started.append(collector)
        return collector

    yield start
    for collector in started:
        collector.close()


def sweep(collector: PressureCollector, monotonic_ns: int = 0) -> Reading:
    (reading,) = collector.collect(Tick(7, monotonic_ns))
    return reading


def points(reading: Reading) -> dict[tuple[str, str], float]:
    return {
        (series.instrument.name, str(dict(series.attributes)["system.linux.pressure.stall_type"])): (
            series.convert(value)
        )
        for series, value in reading.points
    }


def test_totals_in_seconds(start: Start) -> None:
    assert points(sweep(start())) == {
        ("system.cpu.linux.pressure.time", "some"): 79.14699,
        ("system.memory.linux.pressure.time", "some"): 12.351871,
        ("system.memory.linux.pressure.time", "full"): 9.811581,
        ("system.io.linux.pressure.time", "some"): 0.000001,
        ("system.io.linux.pressure.time", "full"): 0,
        ("system.irq.linux.pressure.time", "full"): 0.123456,
    }


def test_averages_as_shares_where_they_are_asked_for(start: Start) -> None:
    found = points(sweep(start(averages=True)))
    assert found["system.cpu.linux.pressure.10s", "some"] == pytest.approx(0.8469)
    assert found["system.memory.linux.pressure.1m", "full"] == pytest.approx(0.0062)
    assert found["system.io.linux.pressure.5m", "some"] == pytest.approx(0.1294)
    assert ("system.cpu.linux.pressure.10s", "full") not in found
    assert ("system.irq.linux.pressure.10s", "some") not in found
    assert len(found) == 4 * (1 + 2 + 2 + 1)


def test_units_and_kinds(start: Start) -> None:
    for instrument in start(averages=True).instruments:
        expected = ("counter", "s") if instrument.name.endswith(".time") else ("gauge", "1")
        assert (instrument.kind, instrument.unit) == expected
        assert instrument.number == "double"


def test_it_is_the_same_entity_as_the_hosts(proc: Path, start: Start) -> None:
    roots = Roots(str(proc), str(proc.parent / "sys"), None)
    assert sweep(start(roots=roots)).entity == host_entity(roots)


def test_series_stay_the_same_tuple(proc: Path, start: Start) -> None:
    collector = start()
    first = sweep(collector)
    (proc / "pressure/io").write_text(SOME.format(some=2) + FULL.format(full=1))
    again = sweep(collector)
    assert again.series is first.series
    assert again.value("pressure.io.full.total") == 1


def test_a_kernel_without_cpu_full(proc: Path, start: Start) -> None:
    """Before Linux 5.13."""
    (proc / "pressure/cpu").write_text(SOME.format(some=5))
    assert sweep(start()).value("pressure.cpu.some.total") == 5


def test_irq_may_be_absent(proc: Path, start: Start) -> None:
    (proc / "pressure/irq").unlink()
    collector = start()
    assert sweep(collector).value("pressure.cpu.some.total") == 79146990
    states = {status.name: status for status in collector.sources()}
    assert states["pressure/irq"].state is State.ABSENT
    assert "6.1" in states["pressure/irq"].reason
    assert states["pressure/cpu"].state is State.OK


def test_without_psi_it_cannot_serve(proc: Path) -> None:
    for file in (proc / "pressure").iterdir():
        file.unlink()
    collector = PressureCollector(PressureConfig(), Roots(str(proc), "/sys", None))
    with pytest.raises(Unavailable) as raised:
        collector.start()
    status = raised.value.status
    assert (status.name, status.state) == ("pressure", State.ABSENT)
    assert "psi=1" in status.remedy


def test_a_reading_without_points_is_still_one(proc: Path, start: Start) -> None:
    """Or the host would seem to have ended."""
    collector = start()
    for file in (proc / "pressure").iterdir():
        file.write_text("")
    reading = sweep(collector)
    assert reading.entity.kind == "host"
    assert list(reading.values) == []
    assert {status.state for status in collector.sources()} == {State.FAILED}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.sampled_from(sorted(FILES)),
    content=st.binary(max_size=200) | st.integers(0, 130).map(lambda cut: FILES["memory"][:cut].encode()),
)
def test_whatever_the_files_hold_no_number_is_made_up(
    proc: Path, start: Start, name: str, content: bytes
) -> None:
    for file, recorded in FILES.items():
        (proc / "pressure" / file).write_text(recorded)
    collector = start(averages=True)
    (proc / "pressure" / name).write_bytes(content)
    reading = sweep(collector)
    tokens = set(re.findall(rb"=([0-9.]+)", content))
    for series, value in reading.points:
        if series.source.startswith(f"pressure.{name}."):
            assert any(float(token) == value for token in tokens if re.fullmatch(rb"\d+(\.\d+)?", token))


@pytest.mark.skipif(not Path("/proc/pressure/cpu").exists(), reason="this kernel has no PSI, or it is off")
def test_this_machine(start: Start) -> None:
    def totals() -> dict[str, int]:
        return {
            f"pressure.{file.name}.{kind}.total": int(total)
            for file in Path("/proc/pressure").iterdir()
            for kind, total in re.findall(r"^(\w+) .*total=(\d+)$", file.read_text(), re.MULTILINE)
            if (file.name, kind) != ("cpu", "full")
        }

    before = totals()
    reading = sweep(start(roots=Roots.discover({})))
    after = totals()
    found = {series.source: value for series, value in reading.points}
    assert found.keys() == before.keys()
    assert all(before[source] <= value <= after[source] for source, value in found.items())
