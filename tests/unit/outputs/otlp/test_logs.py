"""Events as log records."""

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from tests.unit.outputs.otlp.material import EVENT, RESOURCES

from cgotel.model import Severity
from cgotel.outputs.otlp.logs import log_request


def attributes(message):
    return {a.key: a.value for a in message.attributes}


def test_an_event_is_one_log_record_with_everything_in_its_place():
    batch = log_request(EVENT, RESOURCES, "1.2.3")
    (resource_logs,) = ExportLogsServiceRequest.FromString(batch.body()).resource_logs
    (scope_logs,) = resource_logs.scope_logs
    (record,) = scope_logs.log_records
    assert batch.items == 1
    assert {k: v.string_value for k, v in attributes(resource_logs.resource).items()} == {
        "host.name": "h1",
        "container.id": "aaa",
    }
    assert (scope_logs.scope.name, scope_logs.scope.version) == ("cgotel", "1.2.3")
    assert (record.event_name, record.time_unix_nano, record.observed_time_unix_nano) == (EVENT.name, 10, 20)
    assert (record.severity_number, record.severity_text) == (Severity.FATAL, "")
    assert (record.trace_id, record.span_id) == (b"", b"")
    assert record.body.string_value == "OOM \\udcff"


def test_its_attributes_carry_the_uid_by_which_a_replay_is_known():
    batch = log_request(EVENT, RESOURCES, "1")
    record = ExportLogsServiceRequest.FromString(batch.body()).resource_logs[0].scope_logs[0].log_records[0]
    found = attributes(record)
    assert found["log.record.uid"].string_value == "uid-1"
    assert found["process.exit.code"].int_value == 137
    assert found["cgotel.sure"].bool_value is True
    assert [v.string_value for v in found["cgotel.evidence"].array_value.values] == ["a", "b\\udc80"]
