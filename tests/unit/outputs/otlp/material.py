"""Instruments, entities and sweeps that several tests speak of, and what they are on the wire."""

from __future__ import annotations

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from cgotel.model import Entity, Event, Instrument, Reading, Severity, Sweep
from cgotel.outputs.otlp.resources import Resources

BEGAN_NS = 1_700_000_000_000_000_000
NOW_NS = BEGAN_NS + 3_600 * 10**9
NEXT_NS = NOW_NS + 10 * 10**9

CPU_TIME = Instrument("container.cpu.time", "counter", "s", "CPU time that was used", "double")
PERIODS = Instrument("cgroup.cpu.periods", "counter", "{period}", "Periods of the CPU quota")
MEMORY = Instrument("container.memory.usage", "updowncounter", "By", "Memory that is used")
LIMIT = Instrument("cgroup.cpu.limit", "updowncounter", "{cpu}", "CPUs that may be used", "double")
PEAK = Instrument("cgroup.memory.peak", "gauge", "By", "The most memory that was used")
UTILIZATION = Instrument("cgroup.memory.utilization", "gauge", "1", "Use of the limit", "double")

USER = CPU_TIME.series("cpu.stat.user_usec", 1_000_000, {"cpu.mode": "user"})
SYSTEM = CPU_TIME.series("cpu.stat.system_usec", 1_000_000, {"cpu.mode": "system"})
NR_PERIODS = PERIODS.series("cpu.stat.nr_periods")
CURRENT = MEMORY.series("memory.current")
QUOTA = LIMIT.series("cpu.max", 100_000)
PEAKED = PEAK.series("memory.peak")
USED = UTILIZATION.series("memory.utilization", 100)

ALL = (USER, CURRENT, PEAKED, SYSTEM, NR_PERIODS, QUOTA, USED)
VALUES = (1_500_000, 4096, 8192, 250_000, 42, 150_000, 37.5)

WEB = Entity("container", "/web@1", {"container.id": "aaa"}, BEGAN_NS)
DB = Entity("container", "/db@2", {"container.id": "bbb"}, BEGAN_NS + 5)

EVENT = Event(
    "cgotel.container.exit",
    10,
    20,
    Severity.FATAL,
    WEB,
    "OOM \udcff",
    "uid-1",
    {"process.exit.code": 137, "cgotel.evidence": ("a", "b\udc80"), "cgotel.sure": True},
)

RESOURCES = Resources({"host.name": "h1"}, {})


def reading(entity=WEB, time_ns=NOW_NS, series=ALL, values=VALUES):
    return Reading(entity, time_ns, tuple(series), list(values))


def sweep(*readings, ended=(), time_ns=NOW_NS):
    return Sweep(time_ns, list(readings), tuple(ended))


def parsed(batches):
    """All ResourceMetrics of some requests."""
    return [r for b in batches for r in ExportMetricsServiceRequest.FromString(b.body()).resource_metrics]


def metrics_of(resource_metrics):
    """name -> Metric."""
    return {m.name: m for scope in resource_metrics.scope_metrics for m in scope.metrics}


def points_of(metric):
    return list((metric.sum if metric.HasField("sum") else metric.gauge).data_points)
