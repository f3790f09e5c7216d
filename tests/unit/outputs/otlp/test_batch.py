"""Requests: joined, halved, and still the same message."""

import gzip

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.metrics.v1.metrics_pb2 import ResourceMetrics

from cgotel.outputs.otlp.batch import Batch, Record, batches


def record(name, items=1):
    message = ExportMetricsServiceRequest(resource_metrics=[ResourceMetrics(schema_url=name)])
    return Record(message.SerializeToString(), items)


def names(batch):
    return [r.schema_url for r in ExportMetricsServiceRequest.FromString(batch.body()).resource_metrics]


def test_it_is_kept_as_gzip_and_counted():
    batch = Batch.of([record("a", 3), record("b", 4)])
    assert names(batch) == ["a", "b"]
    assert batch.items == 7
    assert gzip.decompress(batch.packed) == batch.body()


def test_halves_hold_everything_in_order_until_there_is_one_record():
    batch = Batch.of([record("a", 1), record("b", 2), record("c", 3)])
    first, second = batch.halves()
    assert (names(first), first.items) == (["a"], 1)
    assert (names(second), second.items) == (["b", "c"], 5)
    assert first.halves() == ()


def test_merged_batches_are_one_request():
    one, two = Batch.of([record("a", 1)]), Batch.of([record("b", 2), record("c", 3)])
    merged = Batch.merged([one, two])
    assert (names(merged), merged.counts) == (["a", "b", "c"], (1, 2, 3))
    assert Batch.merged([one]) is one


def test_batches_stay_below_the_limit_but_for_a_record_that_is_larger_alone():
    records = [record("x" * 30), record("y" * 30), record("z" * 500), record("w" * 30)]
    assert [names(b) for b in batches(records, 80)] == [["x" * 30, "y" * 30], ["z" * 500], ["w" * 30]]
    assert list(batches([], 80)) == []
