"""The smaller controllers: pids, hugetlb, rdma, misc, dmem, and the core files of every cgroup.

pids.events     max 12
rdma.current    mlx4_0 hca_handle=2 hca_object=2000
misc.current    res_a 3
dmem.current    drm/0000:03:00.0/vram0 8650752
cgroup.stat     nr_descendants 3
cgroup.events   populated 1
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from cgotel.collectors.cgroup.tables import Family
from cgotel.collectors.tables import MICROSECONDS, FileTable, by_key, keys, pairs, rows, value
from cgotel.model import Instrument, Series


def tables(family: Family, huge_page_sizes: Iterable[tuple[str, int]]) -> list[FileTable]:
    """What is read for a cgroup; sizes are ``("2MB", 2097152)`` as hugetlb's file names have them."""
    return [
        *_core(family),
        *_pids(family),
        *_hugetlb(family, huge_page_sizes),
        *_rdma(family),
        *_misc(family),
        *_dmem(family),
    ]


def _core(family: Family) -> list[FileTable]:
    descendants = family.updown("descendant.count", "{cgroup}", "Cgroups below this one")
    status = family.updown("status", "1", "Whether the cgroup is in this state")
    frozen = family.counter("freeze.time", "s", "Time that the cgroup was frozen", "double")
    return [
        keys(
            "cgroup.stat",
            rows(
                "cgroup.stat",
                descendants,
                "cgroup.descendant.state",
                "nr_descendants=live nr_dying_descendants=dying",
            ),
        ),
        keys("cgroup.events", rows("cgroup.events", status, "cgroup.state", "populated frozen")),
        keys(
            "cgroup.stat.local",
            {"frozen_usec": frozen.series("cgroup.stat.local.frozen_usec", MICROSECONDS)},
        ),
    ]


def _pids(family: Family) -> list[FileTable]:
    hits = family.counter(
        "pid.limit_hits", "{event}", "Forks refused by a pids limit; which ones: pids.events"
    )
    local = family.counter("pid.limit_local_hits", "{event}", "Forks refused by this cgroup's own pids.max")
    return [
        value("pids.current", family.updown("pid.count", "{pid}", "Processes and threads")),
        value("pids.max", family.updown("pid.limit", "{pid}", "Own limit; absent without one")),
        value(
            "pids.peak",
            family.gauge("pid.peak", "{pid}", "Largest count since the cgroup was made"),
        ),
        keys("pids.events", {"max": hits.series("pids.events.max")}),
        keys("pids.events.local", {"max": local.series("pids.events.local.max")}),
    ]


def _hugetlb(family: Family, sizes: Iterable[tuple[str, int]]) -> list[FileTable]:
    tables = []
    amounts = {
        "current": family.updown("hugetlb.usage", "By", "Huge pages in use"),
        "max": family.updown("hugetlb.limit", "By", "Limit of huge pages; absent without one"),
        "rsvd.current": family.updown("hugetlb.reserved", "By", "Huge pages reserved"),
    }
    events = family.counter("hugetlb.events", "{event}", "Huge page allocations refused by the limit")
    for label, page_size in sizes:
        attributes = {"cgroup.hugetlb.page_size": page_size}
        for suffix, instrument in amounts.items():
            tables.append(value(f"hugetlb.{label}.{suffix}", instrument, attributes))
        file = f"hugetlb.{label}.events"
        tables.append(keys(file, {"max": events.series(f"{file}.max", attributes=attributes)}))
    return tables


def _rdma(family: Family) -> list[FileTable]:
    instruments = {
        "rdma.current": family.updown("rdma.usage", "{resource}", "RDMA resources in use"),
        "rdma.max": family.updown("rdma.limit", "{resource}", "Limit of RDMA resources; absent without one"),
    }
    return [pairs(file, _rdma_row(file, instrument)) for file, instrument in instruments.items()]


def _rdma_row(file: str, instrument: Instrument) -> Callable[[str, str], Series]:
    def make(device: str, resource: str) -> Series:
        attributes = {"system.device": device, "cgroup.rdma.resource": resource}
        return instrument.series(f"{file}.{device}.{resource}", attributes=attributes)

    return make


def _misc(family: Family) -> list[FileTable]:
    instruments = {
        "misc.current": family.updown("misc.usage", "1", "Resources of the misc controller in use"),
        "misc.max": family.updown("misc.limit", "1", "Limit of a misc resource; absent without one"),
        "misc.peak": family.gauge("misc.peak", "1", "Largest use of a misc resource"),
        "misc.capacity": family.updown("misc.capacity", "1", "What the host has of a misc resource"),
    }
    events = family.counter("misc.events", "{event}", "Requests refused by a misc limit")
    return [
        *(by_key(file, _keyed_row(file, i, "cgroup.misc.resource")) for file, i in instruments.items()),
        by_key("misc.events", _keyed_row("misc.events", events, "cgroup.misc.resource", ".max")),
    ]


def _dmem(family: Family) -> list[FileTable]:
    instruments = {
        "dmem.current": family.updown("dmem.usage", "By", "Device memory in use"),
        "dmem.max": family.updown("dmem.limit", "By", "Limit of device memory; absent without one"),
        "dmem.capacity": family.updown("dmem.capacity", "By", "Device memory of the host"),
    }
    return [by_key(file, _keyed_row(file, i, "cgroup.dmem.region")) for file, i in instruments.items()]


def _keyed_row(
    file: str, instrument: Instrument, attribute: str, suffix: str = ""
) -> Callable[[str], Series | None]:
    def make(key: str) -> Series | None:
        if not key.endswith(suffix):
            return None
        return instrument.series(f"{file}.{key}", attributes={attribute: key.removesuffix(suffix)})

    return make
