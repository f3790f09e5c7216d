"""Putting serialised messages together, against protobuf itself."""

from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.metrics.v1.metrics_pb2 import NumberDataPoint, ResourceMetrics

from cgotel.outputs.otlp import wire


@given(st.integers(0, 2**32 - 1))
def test_varint_is_what_protobuf_writes(number):
    assert wire.varint(number) == NumberDataPoint(flags=number).SerializeToString()[1:] or number == 0
    assert NumberDataPoint.FromString(wire.key(8, wire.VARINT) + wire.varint(number)).flags == number


def test_keys_are_what_protobuf_writes():
    assert NumberDataPoint(time_unix_nano=1).SerializeToString()[:1] == wire.key(3, wire.FIXED64)
    assert (
        ExportMetricsServiceRequest(resource_metrics=[ResourceMetrics(schema_url="x" * 300)])
        .SerializeToString()
        .startswith(wire.head(1, 303))
    )


@given(st.lists(st.integers(0, 40_000), max_size=5))
def test_records_are_the_fields_of_a_request(sizes):
    messages = [ResourceMetrics(schema_url="x" * size) for size in sizes]
    records = wire.records(ExportMetricsServiceRequest(resource_metrics=messages).SerializeToString())
    assert [ExportMetricsServiceRequest.FromString(r).resource_metrics[0] for r in records] == messages
