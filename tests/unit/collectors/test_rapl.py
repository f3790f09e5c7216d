"""RAPL zones: no joule twice, a counter that ends and begins anew, and every way not to be readable."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cgotel.collectors.rapl.collector import RaplCollector, RaplConfig
from cgotel.collectors.rapl.meter import Meter
from cgotel.contract import SourceStatus, State, Tick, Unavailable
from cgotel.kernel.roots import Roots
from cgotel.model import Reading

RANGE = 262_143_328_850
SECOND = 10**9
T0 = 1_796_000_000 * SECOND

LAYOUTS = {
    "laptop": (
        {
            "intel-rapl:0": "package-0",
            "intel-rapl:0:0": "core",
            "intel-rapl:0:1": "uncore",
            "intel-rapl:1": "psys",
            "intel-rapl-mmio:0": "package-0",
        },
        "GenuineIntel",
        {"intel-rapl:0": "cpu", "intel-rapl:1": None},
    ),
    "two sockets": (
        {
            "intel-rapl:0": "package-1",  # a zone's number is not a socket's
            "intel-rapl:0:0": "dram",
            "intel-rapl:1": "package-0",
            "intel-rapl:1:0": "dram",
        },
        "GenuineIntel",
        {
            "intel-rapl:0": "cpu",
            "intel-rapl:0:0": "memory",
            "intel-rapl:1": "cpu",
            "intel-rapl:1:0": "memory",
        },
    ),
    "epyc": (
        {"intel-rapl:0": "package-0", "intel-rapl:0:0": "core"},
        "AuthenticAMD",
        {"intel-rapl:0": "cpu"},
    ),
    "epyc, each die a mirror": (
        {
            "intel-rapl:0": "package-0-die-0",
            "intel-rapl:0:0": "core",
            "intel-rapl:1": "package-0-die-1",
            "intel-rapl:2": "package-1-die-0",
            "intel-rapl:3": "package-1-die-1",
        },
        "AuthenticAMD",
        {"intel-rapl:0": "cpu", "intel-rapl:2": "cpu"},
    ),
    "several dies": (
        {"intel-rapl:0": "package-0-die-0", "intel-rapl:1": "package-0-die-1"},
        "GenuineIntel",
        {"intel-rapl:0": "cpu", "intel-rapl:1": "cpu"},
    ),
    "psys for each socket": (
        {"intel-rapl:0": "psys-0", "intel-rapl:1": "psys-1", "intel-rapl:2": "package-0"},
        "GenuineIntel",
        {"intel-rapl:0": None, "intel-rapl:1": None, "intel-rapl:2": "cpu"},
    ),
    "mmio alone": (
        {"intel-rapl-mmio:0": "package-0", "intel-rapl-mmio:0:0": "dram"},
        "GenuineIntel",
        {"intel-rapl-mmio:0": "cpu", "intel-rapl-mmio:0:0": "memory"},
    ),
}


class Host:
    """A tree of zones as the kernel links them, and a collector that is asked once a second."""

    def __init__(self, root: Path) -> None:
        self.roots = Roots(str(root / "proc"), str(root / "sys"), None)
        self.listing = root / "sys/class/powercap"
        self.devices = root / "sys/devices/virtual/powercap"
        self.seconds = 0
        self.collector: RaplCollector | None = None
        for directory in (root / "proc", self.listing, self.devices):
            directory.mkdir(parents=True)
        (self.listing / "intel-rapl").mkdir()  # the control type itself
        (self.listing / "dtpm:0").mkdir()
        self.vendor("GenuineIntel")

    def vendor(self, name: str) -> None:
        Path(self.roots.proc, "cpuinfo").write_text(f"processor\t: 0\nvendor_id\t: {name}\ncpu family\t: 6\n")

    def add(self, zone: str, name: str, energy: int = 1000, range_uj: str = f"{RANGE}\n") -> None:
        directory = self.devices / zone
        directory.mkdir()
        (directory / "name").write_text(f"{name}\n")
        (directory / "max_energy_range_uj").write_text(range_uj)
        self.set(zone, energy)
        (self.listing / zone).symlink_to(directory)

    def set(self, zone: str, energy: int | str) -> None:
        (self.devices / zone / "energy_uj").write_text(f"{energy}\n" if isinstance(energy, int) else energy)

    def use(self, joules: int, zone: str = "intel-rapl:0") -> None:
        energy = int((self.devices / zone / "energy_uj").read_text())
        self.set(zone, energy + joules * 1_000_000)

    def start(self, parts: bool = False) -> None:
        self.collector = RaplCollector(RaplConfig(parts=parts), self.roots)
        self.collector.start()

    def sweep(self, seconds: int = 1, asleep: int = 0) -> dict[str, Reading]:
        assert self.collector is not None
        self.seconds += seconds
        self.asleep = getattr(self, "asleep", 0) + asleep
        tick = Tick(T0 + (self.seconds + self.asleep) * SECOND, self.seconds * SECOND)
        return {reading.entity.key: reading for reading in self.collector.collect(tick)}

    def statuses(self) -> dict[str, SourceStatus]:
        assert self.collector is not None
        return {status.name: status for status in self.collector.sources()}


@contextmanager
def another_user() -> Iterator[None]:
    """Be one who is not root for a while; who is not root already stays who they are."""
    if os.geteuid() != 0:
        pytest.skip("who owns the file may read it, and root alone can be another")
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    made = Host(tmp_path)
    yield made
    if made.collector is not None:
        made.collector.close()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_no_joule_stands_in_two_zones(host: Host, layout: str) -> None:
    zones, vendor, expected = LAYOUTS[layout]
    host.vendor(vendor)
    for zone, name in zones.items():
        host.add(zone, name)
    host.start()
    host.sweep()
    for zone in zones:
        host.use(50, zone)
    readings = host.sweep()
    assert readings.keys() == expected.keys()
    for zone, kind in expected.items():
        metric = "hw" if kind else "hw.host"
        reading = readings[zone]
        assert reading.metric(f"{metric}.energy") == 50
        assert reading.metric(f"{metric}.power") == 50
        assert reading.attribute(f"{metric}.power", "hw.type") == kind
        assert reading.entity.attributes["hw.id"] == zone
        assert reading.entity.attributes["hw.name"] == zones[zone]


def test_parts_where_they_are_asked_for(host: Host) -> None:
    for zone, name in LAYOUTS["laptop"][0].items():
        host.add(zone, name)
    host.start(parts=True)
    host.sweep()
    host.use(3, "intel-rapl:0:0")
    reading = host.sweep()["intel-rapl:0:0"]
    assert reading.metric("cgotel.rapl.subzone.energy") == 3
    assert reading.metric("hw.energy") is None
    assert reading.entity.attributes["hw.parent"] == "intel-rapl:0"


def test_never_the_core_zone_of_amd(host: Host) -> None:
    host.vendor("AuthenticAMD")
    for zone, name in LAYOUTS["epyc"][0].items():
        host.add(zone, name)
    host.start(parts=True)
    assert host.sweep().keys() == {"intel-rapl:0"}


def test_the_first_look_measures_nothing(host: Host) -> None:
    host.add("intel-rapl:0", "package-0")
    host.start()
    assert list(host.sweep()["intel-rapl:0"].values) == []


def test_power_is_the_mean_over_the_time_that_passed(host: Host) -> None:
    host.add("intel-rapl:0", "package-0")
    host.start()
    host.sweep()
    host.use(300)
    assert host.sweep(seconds=4)["intel-rapl:0"].metric("hw.power") == 75


def test_the_end_of_the_range_between_two_looks(host: Host) -> None:
    host.add("intel-rapl:0", "package-0", RANGE - 10_000_000)
    host.start()
    first = host.sweep()["intel-rapl:0"].entity
    host.set("intel-rapl:0", 5_000_000)
    reading = host.sweep()["intel-rapl:0"]
    assert reading.metric("hw.energy") == 15
    assert reading.entity.began_ns == T0 + SECOND == host.sweep()["intel-rapl:0"].entity.began_ns
    assert first.key == reading.entity.key


@pytest.mark.parametrize(
    ("range_uj", "before", "after"),
    [
        (f"{RANGE}\n", 100_000_000, 5_000_000),  # set back: 262 kJ in a second cannot be
        ("", RANGE - 10_000_000, 5_000_000),  # the end of the range, which is not known
        (f"{RANGE}\n", 1_000_000, 10_000_000_000),  # a step ahead that cannot be either
    ],
)
def test_a_step_that_cannot_be_begins_the_count_anew(
    host: Host, range_uj: str, before: int, after: int
) -> None:
    host.add("intel-rapl:0", "package-0", before - 1_000_000, range_uj)
    host.start()
    host.sweep()
    host.set("intel-rapl:0", before)
    assert host.sweep()["intel-rapl:0"].metric("hw.energy") == 1
    host.set("intel-rapl:0", after)
    restarted = host.sweep()["intel-rapl:0"]
    assert (list(restarted.values), restarted.entity.began_ns) == ([], T0 + 3 * SECOND)
    host.use(2)
    again = host.sweep()["intel-rapl:0"]
    assert (again.metric("hw.energy"), again.entity.began_ns) == (2, T0 + 3 * SECOND)


def test_no_power_for_a_time_in_which_the_host_slept(host: Host) -> None:
    host.add("intel-rapl:0", "package-0")
    host.start()
    host.sweep()
    host.use(30)
    reading = host.sweep(asleep=3600)["intel-rapl:0"]
    assert (reading.metric("hw.energy"), reading.metric("hw.power")) == (30, None)
    host.use(30)
    assert host.sweep()["intel-rapl:0"].metric("hw.power") == 30


def test_a_counter_that_a_sleep_set_to_zero(host: Host) -> None:
    """An hour of sleep does not make a wrap of it: nothing was used meanwhile."""
    host.add("intel-rapl:0", "package-0", 100_000_000)
    host.start()
    host.sweep()
    host.set("intel-rapl:0", 0)
    reading = host.sweep(asleep=3600)["intel-rapl:0"]
    assert (list(reading.values), reading.entity.began_ns) == ([], T0 + 3602 * SECOND)


def test_a_counter_that_stands_still_is_no_zero(host: Host) -> None:
    host.add("intel-rapl:0", "psys", 0)
    host.start()
    host.sweep()
    assert list(host.sweep(seconds=10)["intel-rapl:0"].values) == []
    assert host.statuses()["powercap/intel-rapl:0"].state is State.FAILED


def test_zones_that_come_and_go(host: Host) -> None:
    host.start()
    assert host.sweep() == {}
    assert host.statuses()["powercap"].state is State.ABSENT
    host.add("intel-rapl:0", "package-0")
    host.sweep()
    host.use(7)
    assert host.sweep()["intel-rapl:0"].metric("hw.energy") == 7
    host.add("intel-rapl:1", "package-1")
    host.use(1)
    assert host.sweep()["intel-rapl:0"].metric("hw.energy") == 8
    (host.listing / "intel-rapl:1").unlink()
    assert host.sweep().keys() == {"intel-rapl:0"}
    assert host.statuses().keys() == {"powercap/intel-rapl:0"}


def test_hidden_zones_in_a_container(host: Host) -> None:
    (host.listing / "intel-rapl:0").symlink_to("../../devices/virtual/powercap/intel-rapl/intel-rapl:0")
    with pytest.raises(Unavailable) as raised:
        host.start()
    assert raised.value.status.state is State.MASKED
    assert "unmask" in raised.value.status.remedy


def test_one_hidden_zone_costs_itself_only(host: Host) -> None:
    host.add("intel-rapl:0", "package-0")
    (host.listing / "intel-rapl:1").symlink_to("nowhere")
    host.start()
    assert host.sweep().keys() == {"intel-rapl:0"}
    assert host.statuses()["powercap/intel-rapl:1"].state is State.MASKED


def test_who_may_not_read_is_told_what_to_do(host: Host) -> None:
    host.add("intel-rapl:0", "package-0")
    (host.devices / "intel-rapl:0/energy_uj").chmod(0o400)
    for directory in (host.listing, *host.listing.parents):
        if directory.is_relative_to(tempfile.gettempdir()):
            directory.chmod(directory.stat().st_mode | 0o055)
    with another_user(), pytest.raises(Unavailable) as raised:
        host.start()
    status = raised.value.status
    assert status.state is State.DENIED
    assert "CAP_DAC_READ_SEARCH" in status.remedy


@pytest.mark.parametrize("content", ["", "\n", "max\n", "-1\n", "12x\n", "99999999999999999999\n"])
def test_a_counter_that_holds_no_number(host: Host, content: str) -> None:
    host.add("intel-rapl:0", "package-0")
    host.add("intel-rapl:1", "package-1")
    host.start()
    host.sweep()
    host.set("intel-rapl:0", content)
    assert host.sweep().keys() == {"intel-rapl:1"}
    assert host.statuses()["powercap/intel-rapl:0"].state is State.FAILED
    host.set("intel-rapl:0", 9_001_000)
    assert host.sweep()["intel-rapl:0"].metric("hw.energy") == 9.0


def test_a_counter_that_cannot_be_read(host: Host) -> None:
    """A directory in its place answers with an error of its own, as a disabled zone does."""
    host.add("intel-rapl:0", "package-0")
    host.add("intel-rapl:1", "package-1")
    host.start()
    (host.devices / "intel-rapl:0/energy_uj").unlink()
    (host.devices / "intel-rapl:0/energy_uj").mkdir()
    assert host.sweep().keys() == {"intel-rapl:1"}
    status = host.statuses()["powercap/intel-rapl:0"]
    assert (status.state, status.reason) == (State.FAILED, "Is a directory")


def test_series_stay_the_same_tuple(host: Host) -> None:
    host.add("intel-rapl:0", "package-0")
    host.start()
    rows = []
    for _ in range(4):
        host.use(1)
        rows.append(host.sweep()["intel-rapl:0"].series)
    assert all(one is other for one, other in pairwise(rows[1:]))


@given(
    steps=st.lists(st.tuples(st.integers(0, 400_000_000), st.integers(1, 120)), max_size=40),
    start=st.integers(0, 65_532_610_987),
)
def test_what_is_counted_is_what_was_used(steps: list[tuple[int, int]], start: int) -> None:
    """Over any number of ends of a range, and any intervals."""
    range_uj = 65_532_610_987
    meter = Meter(2_000)
    raw, at, used = start, 0, 0
    meter.look(raw, range_uj, at, T0)
    for step, seconds in steps:
        raw, at, used = (raw + step) % range_uj, at + seconds * SECOND, used + step
        assert meter.look(raw, range_uj, at, T0 + at)
        assert meter.total_uj == used


def test_this_machine() -> None:
    """Whatever it has: numbers that rise, or none."""
    collector = RaplCollector(RaplConfig(), Roots.discover({}))
    try:
        collector.start()
    except Unavailable:
        return
    list(collector.collect(Tick(T0, 0)))
    for reading in collector.collect(Tick(T0 + SECOND, SECOND)):
        assert all(value > 0 for value in reading.values)
    assert list(collector.sources())
    collector.close()
