"""The Collector itself: what OpenTelemetry's own exporters send is found in its files."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter as GrpcExporter
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter as HttpExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricExporter, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from tests.peers.collector_process import Collector

RESOURCE = Resource({"service.name": "peer-test"})


def exporter(collector: Collector, protocol: str) -> MetricExporter:
    if protocol == "grpc":
        return GrpcExporter(collector.grpc_endpoint, insecure=True)
    return HttpExporter(f"{collector.http_endpoint}/v1/metrics")


@contextmanager
def meter_provider(exporter: MetricExporter) -> Iterator[MeterProvider]:
    reader = PeriodicExportingMetricReader(exporter, export_interval_millis=math.inf)
    provider = MeterProvider([reader], RESOURCE, shutdown_on_exit=False)
    yield provider
    provider.force_flush()
    provider.shutdown()


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_a_sum_arrives_whole(collector: Collector, protocol: str) -> None:
    before_ns = time.time_ns()
    with meter_provider(exporter(collector, protocol)) as provider:
        counter = provider.get_meter("peers").create_counter("work.done", "{piece}", "Pieces of work")
        counter.add(3, {"kind": "small"})

    point = collector.metrics()[0]
    assert point.resource == {"service.name": "peer-test"}
    assert (point.scope, point.name, point.unit) == ("peers", "work.done", "{piece}")
    assert point.description == "Pieces of work"
    assert (point.kind, point.monotonic, point.temporality) == ("sum", True, "cumulative")
    assert (point.attributes, point.value) == ({"kind": "small"}, 3)
    assert point.start_ns is not None
    assert before_ns <= point.start_ns <= point.time_ns <= time.time_ns()


def test_a_gauge_has_no_temporality(collector: Collector) -> None:
    with meter_provider(exporter(collector, "http")) as provider:
        provider.get_meter("peers").create_gauge("load", "1").set(0.25)

    point = collector.metrics()[0]
    assert (point.kind, point.temporality, point.value) == ("gauge", None, 0.25)


def test_a_log_event_arrives_whole(collector: Collector) -> None:
    provider = LoggerProvider(RESOURCE, shutdown_on_exit=False)
    provider.add_log_record_processor(
        SimpleLogRecordProcessor(OTLPLogExporter(f"{collector.http_endpoint}/v1/logs"))
    )
    provider.get_logger("peers").emit(
        LogRecord(
            timestamp=7,
            observed_timestamp=9,
            severity_number=SeverityNumber.WARN,
            body="It ended.",
            attributes={"tags": ["a", "b"], "code": 137},
            event_name="container.ended",
        )
    )
    provider.shutdown()

    record = collector.logs()[0]
    assert (record.event_name, record.severity, record.body) == ("container.ended", 13, "It ended.")
    assert record.attributes == {"tags": ("a", "b"), "code": 137}
    assert (record.time_ns, record.observed_ns) == (7, 9)
    assert record.resource == {"service.name": "peer-test"}


def test_it_ends_by_sigterm_and_comes_back_at_the_same_address(collector: Collector) -> None:
    endpoints = collector.http_endpoint, collector.grpc_endpoint
    send_load(collector)
    collector.metrics()  # it says that it is ready a moment before it minds signals
    assert collector.stop() == 0
    collector.start()
    assert (collector.http_endpoint, collector.grpc_endpoint) == endpoints
    send_load(collector)
    assert [point.value for point in collector.metrics(until=lambda points: len(points) == 2)] == [1, 1]


def send_load(collector: Collector) -> None:
    with meter_provider(exporter(collector, "grpc")) as provider:
        provider.get_meter("peers").create_gauge("load").set(1)
