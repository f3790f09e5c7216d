"""The gRPC transport against a receiver that answers in every way, on loopback."""

import socket
import threading

import grpc
import pytest
from google.protobuf.any_pb2 import Any
from google.protobuf.duration_pb2 import Duration
from google.rpc.error_details_pb2 import DebugInfo, RetryInfo
from google.rpc.status_pb2 import Status as RpcStatus
from grpc import StatusCode
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse
from tests.unit.outputs.otlp.backend import GrpcBackend, Status

from cgotel.config import ConfigError
from cgotel.outputs.otlp.answer import Answer, Outcome
from cgotel.outputs.otlp.batch import Batch, Record
from cgotel.outputs.otlp.grpc import GrpcTransport
from cgotel.outputs.otlp.settings import OtlpConfig, resolve

BODY = b"\x0a\x02ab"
BATCH = Batch.of([Record(BODY, 1)])
TIMEOUT_S = 20
SOON_S = 0.2


@pytest.fixture
def transport():
    made = []

    def make(url, **config):
        target = resolve(OtlpConfig(endpoint=url, protocol="grpc", **config), {}).metrics
        made.append(GrpcTransport(target))
        return made[-1]

    yield make
    for one in made:
        one.close()


def answered(transport, *replies, timeout_s=TIMEOUT_S, **config):
    with GrpcBackend(*replies) as backend:
        one = transport(backend.url, **config)
        return [one.send(BATCH, timeout_s) for _ in replies]


def details(*messages):
    status = RpcStatus()
    for message in messages:
        packed = Any()
        packed.Pack(message)
        status.details.append(packed)
    return (("grpc-status-details-bin", status.SerializeToString()),)


@pytest.mark.parametrize("compression", ["gzip", "none"])
def test_a_call_as_the_protocol_wants_it(transport, compression):
    with GrpcBackend() as backend:
        one = transport(backend.url, headers={"API-Key": "s"}, compression=compression)
        assert one.send(BATCH, TIMEOUT_S) == Answer(Outcome.DELIVERED)
        request = backend.next()
    assert request.path == "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export"
    assert (request.body, request.headers["api-key"]) == (BODY, "s")
    assert request.headers["user-agent"].startswith("cgotel/")


RETRYABLE = {"CANCELLED", "DEADLINE_EXCEEDED", "ABORTED", "OUT_OF_RANGE", "UNAVAILABLE", "DATA_LOSS"}


@pytest.mark.parametrize("code", [code for code in StatusCode if code is not StatusCode.OK])
def test_codes_are_retryable_as_the_protocol_says(transport, code):
    (answer,) = answered(transport, Status(code, "some words"))
    assert answer.outcome is (Outcome.RETRY if code.name in RETRYABLE else Outcome.REFUSED)
    assert answer.reason == f"{code.name}: some words"


def test_retry_info_says_when_to_come_back(transport):
    info = details(DebugInfo(detail="x"), RetryInfo(retry_delay=Duration(seconds=2, nanos=500_000_000)))
    answers = answered(
        transport, Status(StatusCode.UNAVAILABLE, "", info), Status(StatusCode.RESOURCE_EXHAUSTED, "", info)
    )
    assert [(a.outcome, a.retry_after_s) for a in answers] == [(Outcome.RETRY, 2.5)] * 2


@pytest.mark.parametrize(
    "metadata", [details(), details(DebugInfo()), (("grpc-status-details-bin", b"\xff\xff"),)]
)
def test_exhausted_resources_are_tried_again_only_if_the_receiver_says_so(transport, metadata):
    (answer,) = answered(transport, Status(StatusCode.RESOURCE_EXHAUSTED, "quota", metadata))
    assert (answer.outcome, answer.retry_after_s) == (Outcome.REFUSED, None)


def test_a_message_larger_than_the_receiver_takes_is_told_apart(transport):
    large = Batch.of([Record(b"\x0a" + b"x" * 5000, 1)])
    with GrpcBackend(options=[("grpc.max_receive_message_length", 1000)]) as backend:
        answer = transport(backend.url, compression="none").send(large, TIMEOUT_S)
    assert answer.outcome is Outcome.TOO_LARGE


def test_partial_success_is_counted_and_garbage_is_none(transport):
    response = ExportMetricsServiceResponse()
    response.partial_success.rejected_data_points = 3
    partial, garbage = answered(transport, response.SerializeToString(), b"\xff\xff\xff")
    assert partial == Answer(Outcome.DELIVERED, rejected=3)
    assert garbage.outcome is Outcome.REFUSED


def test_a_receiver_that_hangs_costs_the_timeout_and_no_more(transport):
    with GrpcBackend(Status(StatusCode.OK, hang=True)) as backend:
        one = transport(backend.url)
        answer = one.send(BATCH, SOON_S)
        assert answer.outcome is Outcome.RETRY
        assert answer.reason.startswith("DEADLINE_EXCEEDED")
        assert one.send(BATCH, TIMEOUT_S) == Answer(Outcome.DELIVERED)


def test_closing_ends_a_call_that_waits(transport):
    with GrpcBackend(Status(StatusCode.OK, hang=True)) as backend:
        one = transport(backend.url)
        answers = []
        thread = threading.Thread(target=lambda: answers.append(one.send(BATCH, TIMEOUT_S)))
        thread.start()
        backend.next()
        one.close()
        thread.join(TIMEOUT_S)
    assert [a.outcome for a in answers] == [Outcome.RETRY]


def test_nobody_there_is_tried_again(transport):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    answer = transport(f"http://127.0.0.1:{port}").send(BATCH, TIMEOUT_S)
    assert answer.outcome is Outcome.RETRY
    assert "refused" in answer.reason


def test_something_that_is_no_grpc_receiver_is_tried_again_or_refused(transport):
    with socket.create_server(("127.0.0.1", 0)) as server:

        def speak():
            connection, _ = server.accept()
            with connection:
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=speak)
        thread.start()
        answer = transport(f"http://127.0.0.1:{server.getsockname()[1]}").send(BATCH, 2)
        thread.join()
    assert answer.outcome in (Outcome.RETRY, Outcome.REFUSED)


def test_a_receiver_is_known_by_its_certificate(transport, certificates):
    pem, key = ((certificates / name).read_bytes() for name in ("receiver.pem", "receiver.key"))
    mutual = grpc.ssl_server_credentials([(key, pem)], pem, require_client_auth=True)
    files = {
        "certificate": str(certificates / "receiver.pem"),
        "client_certificate": str(certificates / "receiver.pem"),
        "client_key": str(certificates / "receiver.key"),
    }
    with GrpcBackend(credentials=mutual) as backend:
        known = transport(f"https://localhost:{backend.port}", **files)
        assert known.send(BATCH, TIMEOUT_S) == Answer(Outcome.DELIVERED)
        assert transport(f"https://localhost:{backend.port}").send(BATCH, TIMEOUT_S).outcome is Outcome.RETRY


def test_a_tls_file_that_cannot_be_read_is_named(transport, tmp_path):
    with pytest.raises(ConfigError, match=r"none\.pem'\): No such file"):
        transport("https://localhost:1", certificate=str(tmp_path / "none.pem"))


def test_a_client_certificate_may_hold_its_key(transport, certificates, tmp_path):
    pem, key = ((certificates / name).read_bytes() for name in ("receiver.pem", "receiver.key"))
    both = tmp_path / "both.pem"
    both.write_bytes(key + pem)
    files = {"certificate": str(certificates / "receiver.pem"), "client_certificate": str(both)}
    mutual = grpc.ssl_server_credentials([(key, pem)], pem, require_client_auth=True)
    with GrpcBackend(credentials=mutual) as backend:
        one = transport(f"https://localhost:{backend.port}", **files)
        assert one.send(BATCH, TIMEOUT_S) == Answer(Outcome.DELIVERED)
