"""What a body of a success, or of an error, says."""

from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse

from cgotel.outputs.otlp.answer import Answer, Outcome, delivered, shown, status_message
from cgotel.outputs.otlp.signals import LOGS, METRICS


def test_an_empty_body_is_a_full_success():
    assert delivered(METRICS, b"") == Answer(Outcome.DELIVERED)


def test_partial_success_is_read_by_signal():
    metrics = ExportMetricsServiceResponse()
    metrics.partial_success.rejected_data_points = 3
    metrics.partial_success.error_message = "too old"
    assert delivered(METRICS, metrics.SerializeToString()) == Answer(Outcome.DELIVERED, "too old", rejected=3)
    logs = ExportLogsServiceResponse()
    logs.partial_success.rejected_log_records = 2
    assert delivered(LOGS, logs.SerializeToString()) == Answer(Outcome.DELIVERED, rejected=2)


def test_a_body_that_is_no_response_is_no_success():
    answer = delivered(METRICS, b"<html>Log in\x00</html>")
    assert answer == Answer(Outcome.REFUSED, "the answer is not OTLP: <html>Log in </html>")


def test_an_error_is_a_status_or_shown_as_it_is():
    assert status_message(Status(code=3, message="bad unit").SerializeToString()) == "bad unit"
    assert status_message(b"\xff\xfe plain") == "\ufffd\ufffd plain"


def test_what_is_shown_is_one_short_line():
    assert shown(b"a\r\nb" + b"x" * 1000) == "a  b" + "x" * 196
    assert shown(b"") == "(empty)"
