"""Which value of collectd each metric is: its type, its type instance, its unit.

A cgroup's metrics stand here without the family that their names begin with (`cgroup.`,
`container.`, `k8s.pod.`): the plugin instance says what they are of. ``{attribute}`` in a type
instance stands for the series' attribute. A metric without a row, a plugin's, is a `derive` or a
`gauge` under its own name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from cgotel.model import Instrument

MILLI = 1_000
MICRO = 1_000_000
PERCENT = 100

FAMILIES = ("cgroup.", "container.", "k8s.pod.")
"""How the names of a cgroup's metrics begin."""

_RESOURCES = ("cpu", "memory", "io", "irq")
_WINDOWS = {"10s": "avg10", "1m": "avg60", "5m": "avg300"}

_NODE = "{system.memory.linux.node}"
_ZONE = "{system.memory.linux.zone}"
_ORDER = "{system.memory.linux.order}"
_DEVICE = "{system.device}"
_TYPE = "{cgroup.memory.type}"
_PAGE_SIZE = "{cgroup.hugetlb.page_size}"
_RESOURCE = "{cgroup.misc.resource}"
_REGION = "{cgroup.dmem.region}"
_STALL = "{system.linux.pressure.stall_type}"

_DIRECTION = ("disk.io.direction", {"read": "read", "write": "write"})
_FAULTS = ("system.paging.fault.type", {"minor": "minflt", "major": "majflt"})


@dataclass(frozen=True, slots=True)
class Row:
    """``scale`` leads from the instrument's unit to collectd's.

    Where a type has several data sources, ``source`` names the one that a metric fills, or the
    attribute that tells it and what each of its values fills.
    """

    type: str
    instance: str = ""
    scale: int = 1
    source: str | tuple[str, Mapping[str, str]] = "value"


def row_of(instrument: Instrument) -> Row:
    """The row of a metric."""
    name = instrument.name
    for family in FAMILIES:
        if name.startswith(family):
            return ROWS.get(name.removeprefix(family)) or _unknown(instrument)
    return ROWS.get(name) or _unknown(instrument)


def _unknown(instrument: Instrument) -> Row:
    return Row("derive" if instrument.kind == "counter" else "gauge", instrument.name)


def _ms(instance: str) -> Row:
    return Row("total_time_in_ms", instance, MILLI)


def _pressure(metric: str, instance: str) -> Iterator[tuple[str, Row]]:
    yield f"{metric}.time", _ms(f"{instance}-{_STALL}")
    for window, average in _WINDOWS.items():
        yield f"{metric}.{window}", Row("percent", f"{instance}-{_STALL}-{average}", PERCENT)


def _pressures(template: str) -> dict[str, Row]:
    return dict(row for r in _RESOURCES for row in _pressure(template.format(r), f"psi-{r}"))


def _rows(type_: str, instances: Mapping[str, str]) -> dict[str, Row]:
    return {metric: Row(type_, instance) for metric, instance in instances.items()}


_CPU = {
    "cpu.time": Row("ps_cputime", scale=MICRO, source=("cpu.mode", {"user": "user", "system": "syst"})),
    "cpu.utilization": Row("cgotel_utilization", "cpu", PERCENT),
    "cpu.nice.time": _ms("cpu-nice"),
    "cpu.burst.time": _ms("cpu-burst"),
    "cpu.force_idle.time": _ms("cpu-force-idle"),
    "cpu.throttled.time": _ms("cpu-throttled"),
    "cpu.throttled.local_time": _ms("cpu-throttled-local"),
    "cpu.ancestor.throttled.time": _ms("cpu-throttled-by-{cgroup.limit.owner}"),
    **_rows(
        "derive",
        {
            "cpu.periods": "cpu-periods",
            "cpu.throttled.periods": "cpu-throttled",
            "cpu.bursts": "cpu-bursts",
        },
    ),
    **_rows(
        "gauge",
        {
            "cpu.usage": "cpu_cores",
            "cpu.limit": "cpu_limit",
            "cpu.effective_limit": "cpu_effective_limit",
            "cpu.period": "cpu_period",
            "cpu.weight": "cpu_weight",
        },
    ),
    **_rows("count", {"cpuset.cpu.count": "cpus", "cpuset.node.count": "nodes"}),
}

_MEMORY = {
    **_rows(
        "memory",
        {
            "memory.usage": "used",
            "memory.working_set": "working_set",
            "memory.rss": "rss",
            "memory.available": "available",
            "memory.peak": "peak",
            "memory.limit": "limit",
            "memory.effective_limit": "effective_limit",
            "memory.effective_high": "effective_high",
            "memory.high": "high",
            "memory.low": "low",
            "memory.min": "min",
            "memory.type.usage": _TYPE,
            "memory.lru.usage": "{cgroup.memory.lru}",
            "memory.slab.usage": "slab_{system.memory.linux.slab.state}",
            "memory.slab.size": "slab",
            "memory.hugetlb": "hugetlb",
            "memory.shmem": "shmem",
            "memory.mapped": "file_mapped",
            "memory.dirty": "file_dirty",
            "memory.writeback": "file_writeback",
            "memory.swap_cached": "swapcached",
            "memory.kernel_stack": "kernel_stack",
            "memory.page_table": "pagetables",
            "memory.secondary_page_table": "sec_pagetables",
            "memory.percpu": "percpu",
            "memory.vmalloc": "vmalloc",
            "memory.zswap": "stat_zswap",
            "memory.zswapped": "zswapped",
            "memory.thp.usage": f"{_TYPE}_thp",
            "memory.numa.usage": f"{_TYPE}-node{{cgroup.numa.node}}",
            "paging.usage": "swap_used",
            "paging.limit": "swap_limit",
            "paging.effective_limit": "swap_effective_limit",
            "paging.high": "swap_high",
            "paging.peak": "swap_peak",
            "zswap.usage": "zswap",
            "zswap.limit": "zswap_limit",
        },
    ),
    "memory.headroom": Row("cgotel_headroom", "memory"),
    "memory.high_headroom": Row("cgotel_headroom", "memory_high"),
    "memory.utilization": Row("cgotel_utilization", "memory", PERCENT),
    "memory.faults": Row("derive", "pgfault"),
    "memory.events": Row("derive", "memory_event-{cgroup.memory.event}"),
    "memory.local_events": Row("derive", "memory_event_local-{cgroup.memory.event}"),
    **_rows(
        "vmpage_action",
        {
            "memory.refaults": f"refault-{_TYPE}",
            "memory.activated_refaults": f"refault_activate-{_TYPE}",
            "memory.restored_refaults": f"refault_restore-{_TYPE}",
            "memory.reclaim.scanned_pages": "scan-{cgroup.memory.reclaimer}",
            "memory.reclaim.reclaimed_pages": "steal-{cgroup.memory.reclaimer}",
            "memory.reclaim.all_scanned_pages": "scan",
            "memory.reclaim.all_reclaimed_pages": "steal",
            "memory.reclaim.refilled_pages": "refill",
            "memory.reclaim.activated_pages": "activate",
            "memory.reclaim.deactivated_pages": "deactivate",
            "memory.reclaim.shadow_nodes": "shadow_nodes",
            "memory.lazy_free.marked_pages": "lazyfree",
            "memory.lazy_free.freed_pages": "lazyfreed",
            "memory.numa.demoted_pages": "demote-{cgroup.memory.reclaimer}",
            "memory.numa.promoted_pages": "promote",
            "memory.numa.migrated_pages": "numa_migrate",
            "memory.numa.pte_updates": "numa_pte_updates",
            "memory.numa.hint_faults": "numa_hint_faults",
            "memory.numa.migrated_tasks": "numa_task_migrated",
            "memory.numa.swapped_tasks": "numa_task_swapped",
            "memory.thp.allocations": "thp-{cgroup.memory.thp.cause}",
            "memory.thp.swap_outs": "thp_swpout-{cgroup.memory.thp.outcome}",
            "paging.zero_pages": "swap_zero-{system.paging.direction}",
            "zswap.operations": "zswap-{system.paging.direction}",
            "zswap.written_back_pages": "zswap_writeback",
        },
    ),
    "paging.operations": Row("swap_io", "{system.paging.direction}"),
    "paging.events": Row("derive", "swap_event-{cgroup.paging.event}"),
    "paging.faults": Row("vmpage_faults", source=_FAULTS),
}

_IO = {
    "disk.io": Row("disk_octets", _DEVICE, source=_DIRECTION),
    "disk.operations": Row("disk_ops", _DEVICE, source=_DIRECTION),
    "disk.discard.io": Row("total_bytes", f"discard-{_DEVICE}"),
    "disk.discard.operations": Row("total_operations", f"discard-{_DEVICE}"),
    "disk.limit.io": Row("gauge", f"io_max-{_DEVICE}-{{disk.io.direction}}_bps"),
    "disk.limit.operations": Row("gauge", f"io_max-{_DEVICE}-{{disk.io.direction}}_iops"),
    "disk.weight": Row("gauge", "io_weight"),
    "disk.latency_target": Row("gauge", f"io_latency-{_DEVICE}"),
}

_OTHERS = {
    **_rows(
        "gauge",
        {
            "pid.count": "pids",
            "pid.limit": "pids_limit",
            "pid.effective_limit": "pids_effective_limit",
            "pid.peak": "pids_peak",
            "process.count": "processes",
            "status": "{cgroup.state}",
            "rdma.usage": f"rdma-{_DEVICE}-{{cgroup.rdma.resource}}",
            "rdma.limit": f"rdma_limit-{_DEVICE}-{{cgroup.rdma.resource}}",
            "misc.usage": f"misc-{_RESOURCE}",
            "misc.limit": f"misc_limit-{_RESOURCE}",
            "misc.peak": f"misc_peak-{_RESOURCE}",
            "misc.capacity": f"misc_capacity-{_RESOURCE}",
        },
    ),
    **_rows(
        "memory",
        {
            "hugetlb.usage": f"hugetlb-{_PAGE_SIZE}",
            "hugetlb.limit": f"hugetlb_limit-{_PAGE_SIZE}",
            "hugetlb.reserved": f"hugetlb_reserved-{_PAGE_SIZE}",
            "dmem.usage": f"dmem-{_REGION}",
            "dmem.limit": f"dmem_limit-{_REGION}",
            "dmem.capacity": f"dmem_capacity-{_REGION}",
        },
    ),
    **_rows(
        "derive",
        {
            "pid.limit_hits": "pids_event-max",
            "pid.limit_local_hits": "pids_event_local-max",
            "process.observed_starts": "process-starts",
            "process.observed_exits": "process-exits",
            "hugetlb.events": f"hugetlb_event-{_PAGE_SIZE}",
            "misc.events": f"misc_event-{_RESOURCE}",
        },
    ),
    "pid.headroom": Row("cgotel_headroom", "pids"),
    "descendant.count": Row("count", "cgroups-{cgroup.descendant.state}"),
    "freeze.time": _ms("frozen"),
}

_HOST_MEMORY = {
    "system.memory.limit": Row("memory", "total"),
    "system.memory.usage": Row("memory", "{system.memory.state}"),
    "system.paging.usage": Row("memory", f"swap_{{system.paging.state}}-{_DEVICE}"),
    "system.paging.operations": Row("swap_io", "{system.paging.direction}"),
    "system.paging.faults": Row("vmpage_faults", source=_FAULTS),
}

_HOST_LINUX_MEMORY = {
    "available": Row("memory", "available"),
    "shared": Row("memory", "shared"),
    "slab.usage": Row("memory", "slab_{system.memory.linux.slab.state}"),
    "hugepages.page_size": Row("memory", "hugepage_size"),
    "hugepages.limit": Row("vmpage_number", "hugepages_total"),
    "hugepages.reserved": Row("vmpage_number", "hugepages_reserved"),
    "hugepages.surplus": Row("vmpage_number", "hugepages_surplus"),
    "hugepages.usage": Row("vmpage_number", "hugepages_{system.memory.linux.hugepages.state}"),
    "oom_kills": Row("vmpage_action", "oom_kill"),
    "vm.events": Row("vmpage_action", "{system.memory.linux.vm.event}"),
    "allocation.stalls": Row("vmpage_action", f"allocstall_{_ZONE}"),
    "compaction.operations": Row("vmpage_action", "compact_{system.memory.linux.outcome}"),
    "fragmentation": Row("percent", f"fragmentation-node{_NODE}-{_ZONE}-order{_ORDER}", PERCENT),
    "free_block.count": Row("freepages", f"node{_NODE}-{_ZONE}-order{_ORDER}"),
    "numa.allocations": Row("vmpage_action", f"numa_{{system.memory.linux.result}}-node{_NODE}"),
    "numa.local_allocations": Row("vmpage_action", f"numa_{{system.memory.linux.locality}}-node{_NODE}"),
    "numa.foreign_allocations": Row("vmpage_action", f"numa_foreign-node{_NODE}"),
    "numa.interleaved_allocations": Row("vmpage_action", f"numa_interleave-node{_NODE}"),
    "numa.usage": Row("memory", f"{{system.memory.state}}-node{_NODE}"),
    "numa.cached": Row("memory", f"cached-node{_NODE}"),
    "zram.original": Row("memory", f"zram_original-{_DEVICE}"),
    "zram.compressed": Row("memory", f"zram_compressed-{_DEVICE}"),
    "zram.usage": Row("memory", f"zram_used-{_DEVICE}"),
    "zram.limit": Row("memory", f"zram_limit-{_DEVICE}"),
    "zram.peak": Row("memory", f"zram_peak-{_DEVICE}"),
    "zram.writeback.usage": Row("memory", f"zram_writeback-{_DEVICE}"),
    "zram.writeback.io": Row("total_bytes", f"zram_writeback_{{disk.io.direction}}-{_DEVICE}"),
    "zram.same_page.count": Row("vmpage_number", f"zram_same-{_DEVICE}"),
    "zram.huge_page.count": Row("vmpage_number", f"zram_huge-{_DEVICE}"),
    "zram.compacted_pages": Row("vmpage_action", f"zram_compacted-{_DEVICE}"),
    "zram.freed_pages": Row("vmpage_action", f"zram_freed-{_DEVICE}"),
    "zram.failed_operations": Row("derive", f"zram_failed_{{disk.io.direction}}-{_DEVICE}"),
    "zram.invalid_operations": Row("derive", f"zram_invalid-{_DEVICE}"),
}

_HOST_TASKS = {
    "system.cpu.load_average.1m": Row("load", source="shortterm"),
    "system.cpu.load_average.5m": Row("load", source="midterm"),
    "system.cpu.load_average.15m": Row("load", source="longterm"),
    "system.process.created": Row("fork_rate"),
    "system.process.count": Row("ps_state", "{process.state}"),
    "system.process.linux.thread.count": Row("threads"),
    "system.process.linux.thread.exits": Row("derive", "thread-exits"),
}

_POWER = {
    "hw.energy": Row("derive", "energy-{hw.type}"),
    "hw.power": Row("power", "{hw.type}"),
    "hw.host.energy": Row("derive", "energy-host"),
    "hw.host.power": Row("power", "host"),
    "cgotel.rapl.subzone.energy": Row("derive", "energy-part"),
}

_REASON = "{nvidia.gpu.clock.event_reason}"

_GPU = {
    "hw.gpu.utilization": Row("percent", "gpu_used-{hw.gpu.task}", PERCENT),
    "nvidia.gpu.memory.io.utilization": Row("percent", "mem_bus", PERCENT),
    "hw.gpu.memory.usage": Row("memory", "used"),
    "hw.gpu.memory.limit": Row("memory", "total"),
    "hw.gpu.memory.utilization": Row("percent", "mem_used", PERCENT),
    "nvidia.gpu.memory.free": Row("memory", "free"),
    "nvidia.gpu.memory.reserved": Row("memory", "reserved"),
    "nvidia.gpu.memory.unattributed": Row("memory", "unattributed"),
    "nvidia.gpu.process.memory.usage": Row("memory", "used-{process.pid}"),
    "nvidia.gpu.cgroup.memory.usage": Row("memory", "gpu-{hw.id}"),
    "nvidia.gpu.power.limit": Row("power", "limit"),
    "hw.temperature": Row("temperature", "{hw.sensor_location}"),
    "hw.temperature.limit": Row("temperature", "{hw.sensor_location}-{hw.limit_type}"),
    "nvidia.gpu.clock.frequency": Row("frequency", "{nvidia.gpu.clock.type}"),
    "nvidia.gpu.clock.status": Row("gauge", f"clock_reason-{_REASON}"),
    "nvidia.gpu.clock.throttled.time": _ms(f"clock-{_REASON}"),
    "hw.errors": Row("errors", "ecc-{error.type}"),
    "hw.status": Row("gauge", "status-{hw.state}"),
    "nvidia.gpu.memory.remapped_row.count": Row("gauge", "remapped-{nvidia.gpu.memory.remap_cause}"),
    "nvidia.gpu.status": Row("gauge", "state-{nvidia.gpu.state}"),
    "nvidia.gpu.recovery.action": Row("gauge", "recovery_action"),
    "hw.gpu.io": Row("total_bytes", "pcie-{network.io.direction}"),
    "nvidia.gpu.nvlink.io": Row("total_bytes", "nvlink-{network.io.direction}"),
    "cgotel.gpu.process.unmapped": Row("gauge", "processes_unmapped"),
}

_AGENT = {
    "cgotel.sweep.duration": Row("gauge", "sweep_seconds"),
    "cgotel.sweep.points": Row("gauge", "sweep_points"),
    "cgotel.series.dropped": Row("gauge", "series_dropped"),
    "cgotel.collector.duration": Row("gauge", "collector_seconds-{cgotel.collector.name}"),
    "cgotel.collector.errors": Row("derive", "collector_errors-{cgotel.collector.name}"),
    "cgotel.output.errors": Row("derive", "output_errors-{cgotel.output.name}"),
    "cgotel.watcher.errors": Row("derive", "watcher_errors-{cgotel.watcher.name}"),
    "cgotel.evidence.dropped": Row("derive", "evidence_dropped"),
    "cgotel.events.waiting": Row("gauge", "events_waiting"),
    "cgotel.events.dropped": Row("derive", "events_dropped"),
    "cgotel.source.status": Row("gauge", "source-{cgotel.source.name}-{cgotel.source.state}"),
}

_ENDS = {
    "cgotel.container.exits": Row("derive", "exits-{cgotel.restart.reason}"),
    "cgotel.container.restarts": Row("derive", "restarts-{cgotel.restart.reason}"),
}

ROWS: Mapping[str, Row] = MappingProxyType(
    _CPU
    | _MEMORY
    | _IO
    | _OTHERS
    | _pressures("{}.pressure")
    | _HOST_MEMORY
    | {f"system.memory.linux.{name}": row for name, row in _HOST_LINUX_MEMORY.items()}
    | _HOST_TASKS
    | _pressures("system.{}.linux.pressure")
    | _POWER
    | _GPU
    | _AGENT
    | _ENDS
)

WORDS: Mapping[str, str] = MappingProxyType(
    {
        "buffers": "buffered",
        "reclaimable": "recl",
        "unreclaimable": "unrecl",
        "uninterruptible": "blocked",
    }
)
"""What collectd's own plugins call an attribute's value."""
