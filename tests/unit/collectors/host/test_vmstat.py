"""vmstat: a few of its keys under names of their own, any other event where it is asked for."""

import pytest
from tests.unit.collectors.host import machine

from cgotel.collectors.host import HostConfig, vmstat
from cgotel.collectors.instruments import Instruments
from cgotel.collectors.tables import FileTable
from cgotel.model import Entity, Reading


def table(*events: str) -> FileTable:
    make = Instruments()
    return vmstat.table(make, vmstat.event_series(make, events))


def read(vmstat_table: FileTable, content: str = machine.VMSTAT) -> Reading:
    return Reading.of(Entity("host", "h"), 0, zip(*vmstat_table.parse(content.encode()), strict=True))


@pytest.mark.parametrize(
    ("name", "attributes", "expected"),
    [
        ("system.paging.operations", {"system_paging_direction": "in"}, 41),
        ("system.paging.operations", {"system_paging_direction": "out"}, 97),
        ("system.paging.faults", {"system_paging_fault_type": "major"}, 2610),
        ("system.paging.faults", {"system_paging_fault_type": "minor"}, 13772708 - 2610),
        ("system.memory.linux.oom_kills", {}, 2),
        ("system.memory.linux.compaction.operations", {"system_memory_linux_outcome": "success"}, 5),
        ("system.memory.linux.compaction.operations", {"system_memory_linux_outcome": "fail"}, 4),
        ("system.memory.linux.allocation.stalls", {"system_memory_linux_zone": "normal"}, 7),
        ("system.memory.linux.allocation.stalls", {"system_memory_linux_zone": "movable"}, 3),
        ("system.memory.linux.allocation.stalls", {"system_memory_linux_zone": "device"}, None),
        ("system.memory.linux.vm.events", {}, None),
    ],
)
def test_vmstat(name: str, attributes: dict[str, str], expected: int | None) -> None:
    assert read(table()).metric(name, **attributes) == expected


def test_events_are_reported_where_they_are_asked_for() -> None:
    reading = read(table("thp_fault_fallback", "pgscan_direct", "nr_dirtied"))
    events = {
        dict(series.attributes)["system.memory.linux.vm.event"]: value
        for series, value in reading.points
        if series.instrument.name == "system.memory.linux.vm.events"
    }
    assert events == {"thp_fault_fallback": 17, "pgscan_direct": 512, "nr_dirtied": 3469460}


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        ("oom_kill", "reported already"),
        ("allocstall_normal", "reported already"),
        ("nr_dirty", "is an amount"),
        ("workingset_nodes", "is an amount"),
    ],
)
def test_what_is_no_event_is_refused(event: str, reason: str) -> None:
    with pytest.raises(ValueError, match=f"'{event}'.* {reason}"):
        HostConfig(vm_events=("pgscan_direct", event))


def test_minor_faults_never_fall() -> None:
    """The kernel adds up its CPUs one by one: a major fault may show before its fault does."""
    faults = table()
    values = [
        read(faults, f"pgfault {total}\npgmajfault {major}\n").metric(
            "system.paging.faults", system_paging_fault_type="minor"
        )
        for total, major in ((100, 10), (100, 11), (102, 11))
    ]
    assert values == [90, 90, 91]


def test_faults_without_major_ones_are_not_all_minor() -> None:
    assert list(read(table(), "pgfault 100\npgmajfault 1").points) == []
