"""The HTTP transport against a receiver that answers in every way, on loopback."""

import gzip
import logging
import socket
import ssl
import threading
import time
from email.utils import formatdate

import pytest
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse
from tests.unit.outputs.otlp.backend import HttpBackend, Reply

from cgotel import __version__
from cgotel.config import ConfigError
from cgotel.outputs.otlp.answer import Answer, Outcome
from cgotel.outputs.otlp.batch import Batch, Record
from cgotel.outputs.otlp.http import HttpTransport
from cgotel.outputs.otlp.settings import OtlpConfig, resolve

BODY = b"\x0a\x02ab"
BATCH = Batch.of([Record(BODY, 1)])
TIMEOUT_S = 20
SOON_S = 0.2


@pytest.fixture
def transports():
    made = []
    yield made
    for transport in made:
        transport.close()


@pytest.fixture
def transport(transports, monkeypatch):
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)

    def make(url, **config):
        target = resolve(OtlpConfig(endpoint=url, **config), {}).metrics
        transports.append(HttpTransport(target, wall_clock=lambda: 1_000_000.0))
        return transports[-1]

    return make


def answered(transport, *replies, timeout_s=TIMEOUT_S):
    """What the transport makes of these replies, one after another."""
    with HttpBackend(*replies) as backend:
        one = transport(backend.url)
        return [one.send(BATCH, timeout_s) for _ in replies]


def test_a_request_as_the_protocol_wants_it(transport):
    with HttpBackend() as backend:
        one = transport(backend.url + "/base", headers={"API-Key": "s", "Content-Type": "text/plain"})
        assert one.send(BATCH, TIMEOUT_S) == Answer(Outcome.DELIVERED)
        request = backend.next()
    assert (request.path, request.body) == ("/base/v1/metrics", BODY)
    assert request.headers == {
        "host": backend.url.removeprefix("http://"),
        "accept-encoding": "identity",
        "user-agent": f"cgotel/{__version__}",
        "api-key": "s",
        "content-type": "application/x-protobuf",
        "content-encoding": "gzip",
        "content-length": str(len(BATCH.packed)),
    }


def test_without_compression_the_body_is_plain(transport):
    with HttpBackend() as backend:
        transport(backend.url, compression="none").send(BATCH, TIMEOUT_S)
        request = backend.next()
    assert (request.body, request.headers.get("content-encoding")) == (BODY, None)
    assert int(request.headers["content-length"]) == len(BODY)


def test_the_query_of_an_endpoint_is_sent(transport):
    with HttpBackend() as backend:
        target = resolve(OtlpConfig(metrics_endpoint=f"{backend.url}/m?token=t"), {}).metrics
        one = HttpTransport(target)
        one.send(BATCH, TIMEOUT_S)
        one.close()
        assert backend.next().path == "/m?token=t"


def test_the_connection_is_kept(transport):
    with HttpBackend() as backend:
        one = transport(backend.url)
        for _ in range(3):
            one.send(BATCH, TIMEOUT_S)
        assert len({backend.next().connection for _ in range(3)}) == 1
        one.close()


def test_a_kept_connection_that_the_receiver_closed_is_made_anew(transport):
    with HttpBackend(Reply(close=True), Reply(close=True)) as backend:
        one = transport(backend.url)
        assert [one.send(BATCH, TIMEOUT_S).outcome for _ in range(3)] == [Outcome.DELIVERED] * 3


def test_a_kept_connection_that_was_cut_without_a_word_is_made_anew(transport):
    with HttpBackend() as backend:
        one = transport(backend.url)
        one.send(BATCH, TIMEOUT_S)
        one._connection.sock.shutdown(socket.SHUT_RDWR)
        assert one.send(BATCH, TIMEOUT_S) == Answer(Outcome.DELIVERED)
        assert len({backend.next().connection for _ in range(2)}) == 2


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_what_the_protocol_calls_retryable_is(transport, status):
    (answer,) = answered(transport, Reply(status))
    assert (answer.outcome, answer.retry_after_s) == (Outcome.RETRY, None)
    assert answer.reason.startswith(str(status))


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("3", 3.0),
        (formatdate(1_000_030, usegmt=True), 30.0),
        (formatdate(999_000, usegmt=True), 0.0),
        ("soon", None),
        ("-3", None),
        ("\xb2", None),
        ("9" * 5000, 86_400.0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 86_400.0),
    ],
)
def test_retry_after_is_a_number_of_seconds_or_a_date(transport, value, seconds):
    (answer,) = answered(transport, Reply(503, headers={"retry-after": value}))
    assert (answer.outcome, answer.retry_after_s) == (Outcome.RETRY, seconds)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 408, 415, 500, 501])
def test_what_the_protocol_does_not_call_retryable_is_refused(transport, status):
    (answer,) = answered(transport, Reply(status, b"no, thanks", {"content-type": "text/plain"}))
    assert answer.outcome is Outcome.REFUSED
    assert answer.reason.startswith(str(status))
    assert answer.reason.endswith(": no, thanks")


def test_the_message_of_an_error_is_read_from_its_status(transport):
    (answer,) = answered(transport, Reply(400, Status(message="bad unit").SerializeToString()))
    assert answer.reason == "400 Bad Request: bad unit"


def test_what_is_too_large_is_told_apart(transport):
    (answer,) = answered(transport, Reply(413))
    assert answer.outcome is Outcome.TOO_LARGE


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_no_success_and_not_followed(transport, status):
    with HttpBackend(Reply(status, headers={"location": "/elsewhere"})) as backend:
        answer = transport(backend.url).send(BATCH, TIMEOUT_S)
        assert answer.outcome is Outcome.REFUSED
        assert "a redirect" in answer.reason
        backend.next()
        assert backend.requests.empty()


def test_partial_success_is_counted(transport):
    response = ExportMetricsServiceResponse()
    response.partial_success.rejected_data_points = 3
    response.partial_success.error_message = "too old"
    json = b'{"partialSuccess": {"rejectedDataPoints": "4", "errorMessage": "x"}}'
    as_json = {"content-type": "application/json; charset=utf-8"}
    assert answered(
        transport,
        Reply(body=response.SerializeToString()),
        Reply(body=json, headers=as_json),
        Reply(body=b"{}", headers=as_json),
    ) == [
        Answer(Outcome.DELIVERED, "too old", rejected=3),
        Answer(Outcome.DELIVERED, "x", rejected=4),
        Answer(Outcome.DELIVERED),
    ]


@pytest.mark.parametrize(
    "reply",
    [
        Reply(body=b"<html>please log in</html>", headers={"content-type": "text/html"}),
        Reply(body=b"\xff\xff\xff"),
        Reply(body=b"[1]", headers={"content-type": "application/json"}),
        Reply(body=b"\xff", headers={"content-type": "application/json"}),
        Reply(body=b"[" * 60_000, headers={"content-type": "application/json"}),
        Reply(
            body=b'{"partialSuccess": {"rejectedDataPoints": Infinity}}',
            headers={"content-type": "application/json"},
        ),
    ],
)
def test_a_success_that_is_not_otlp_is_none(transport, reply):
    (answer,) = answered(transport, reply)
    assert answer.outcome is Outcome.REFUSED
    assert answer.reason.startswith("the answer is not OTLP: ")


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"\x00\x00\x12\x04\x00\x00\r\n\r\n", "the answer is not HTTP: "),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "the answer is not HTTP: SSH-2.0-OpenSSH_9.2"),
        (b"", "Remote end closed connection without response"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\ncut", "IncompleteRead"),
        (b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 200 + b"\r\n", "got more than 100 headers"),
    ],
)
def test_an_answer_that_is_not_http_is_tried_again(transport, raw, reason):
    (answer,) = answered(transport, Reply(raw=raw))
    assert answer.outcome is Outcome.RETRY
    assert answer.reason.startswith(reason)


def test_a_receiver_is_back_after_garbage(transport):
    assert [a.outcome for a in answered(transport, Reply(raw=b"?"), Reply())] == [
        Outcome.RETRY,
        Outcome.DELIVERED,
    ]


def test_an_answer_without_end_is_not_read_to_the_end(transport):
    long = ExportMetricsServiceResponse()
    long.partial_success.error_message = "x" * 100_000
    first, second = answered(transport, Reply(body=long.SerializeToString()), Reply())
    assert first.outcome is Outcome.REFUSED
    assert second.outcome is Outcome.DELIVERED


@pytest.mark.parametrize("reply", [Reply(hang=True), Reply(drip=True)], ids=["hang", "drip"])
def test_a_receiver_that_hangs_costs_the_timeout_and_no_more(transport, reply):
    with HttpBackend(reply) as backend:
        one = transport(backend.url)
        assert one.send(BATCH, SOON_S) == Answer(Outcome.RETRY, "no answer within 0.2 s")
        assert one.send(BATCH, TIMEOUT_S) == Answer(Outcome.DELIVERED)


def test_closing_ends_a_request_that_waits(transport):
    with HttpBackend(Reply(hang=True)) as backend:
        one = transport(backend.url)
        answers = []
        thread = threading.Thread(target=lambda: answers.append(one.send(BATCH, TIMEOUT_S)))
        thread.start()
        backend.next()
        one.close()
        thread.join(TIMEOUT_S)
        assert [a.outcome for a in answers] == [Outcome.RETRY]
        assert backend.requests.empty()


def test_nobody_there_is_told_in_the_system_s_words(transport):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    answer = transport(f"http://127.0.0.1:{port}").send(BATCH, TIMEOUT_S)
    assert answer == Answer(Outcome.RETRY, "Connection refused")
    answer = transport("http://no-such-host.invalid").send(BATCH, TIMEOUT_S)
    assert answer.outcome is Outcome.RETRY


@pytest.mark.parametrize("fault", [MemoryError("none left"), RuntimeError("no thread"), KeyboardInterrupt()])
@pytest.mark.parametrize("place", ["socket.create_connection", "threading.Timer.start"])
def test_a_fault_of_this_machine_costs_one_request(transport, monkeypatch, fault, place):
    def fail(*_args, **_kwargs):
        raise fault

    with HttpBackend() as backend:
        one = transport(backend.url)
        with monkeypatch.context() as broken:
            broken.setattr(place, fail)
            with pytest.raises(type(fault)):
                one.send(BATCH, TIMEOUT_S)
        assert one.send(BATCH, TIMEOUT_S) == Answer(Outcome.DELIVERED)
        one.close()


def test_closing_ends_a_connection_that_a_proxy_never_makes(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        target = resolve(OtlpConfig(endpoint="https://collector.invalid:4318"), {}).metrics
        monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{silent.getsockname()[1]}")
        monkeypatch.setenv("no_proxy", "")
        one = HttpTransport(target)
        answers = []
        thread = threading.Thread(target=lambda: answers.append(one.send(BATCH, TIMEOUT_S)))
        thread.start()
        accepted, _ = silent.accept()
        with accepted:
            assert accepted.recv(7) == b"CONNECT"
            one.close()
            thread.join(TIMEOUT_S / 2)
            assert not thread.is_alive()
    assert [a.outcome for a in answers] == [Outcome.RETRY]


@pytest.fixture
def tls_backend(certificates):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates / "receiver.pem", certificates / "receiver.key")
    with HttpBackend(context=context) as backend:
        yield backend


def test_a_receiver_is_known_by_its_certificate(transport, tls_backend, certificates):
    url = f"https://localhost:{tls_backend.port}"
    one = transport(url, certificate=str(certificates / "receiver.pem"))
    assert [one.send(BATCH, TIMEOUT_S) for _ in range(2)] == [Answer(Outcome.DELIVERED)] * 2
    assert gzip.decompress(BATCH.packed) == tls_backend.next().body
    one.close()


def test_a_receiver_that_is_not_known_gets_nothing(transport, tls_backend):
    answer = transport(f"https://localhost:{tls_backend.port}").send(BATCH, TIMEOUT_S)
    assert answer.outcome is Outcome.RETRY
    assert answer.reason.startswith("the receiver's certificate is not trusted: self-signed certificate")
    assert tls_backend.requests.empty()


def test_a_client_certificate_is_shown_to_a_receiver_that_wants_one(transport, certificates):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates / "receiver.pem", certificates / "receiver.key")
    context.load_verify_locations(certificates / "receiver.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    own = {
        "certificate": str(certificates / "receiver.pem"),
        "client_certificate": str(certificates / "receiver.pem"),
        "client_key": str(certificates / "receiver.key"),
    }
    with HttpBackend(context=context) as backend:
        one = transport(f"https://localhost:{backend.port}", **own)
        assert one.send(BATCH, TIMEOUT_S) == Answer(Outcome.DELIVERED)
        one.close()


@pytest.mark.parametrize("key", ["certificate", "client_certificate"])
def test_a_tls_file_that_cannot_be_used_is_named_before_anything_starts(transport, key, tmp_path):
    bad = tmp_path / "bad.pem"
    with pytest.raises(ConfigError, match=r"bad\.pem"):
        transport("https://localhost:1", **{key: str(bad)})
    bad.write_text("not PEM")
    with pytest.raises(ConfigError, match=r"bad\.pem"):
        transport("https://localhost:1", **{key: str(bad)})


def test_the_log_knows_no_header(transport, caplog):
    caplog.set_level(logging.DEBUG)
    with HttpBackend(Reply(400)) as backend:
        answer = transport(backend.url, headers={"authorization": "Bearer secret"}).send(BATCH, TIMEOUT_S)
        assert backend.next().headers["authorization"] == "Bearer secret"
    assert "secret" not in caplog.text + answer.reason


def test_a_proxy_stands_between(transport, monkeypatch):
    with HttpBackend() as proxy:
        monkeypatch.setenv("http_proxy", f"http://me:pw@127.0.0.1:{proxy.port}")
        monkeypatch.setenv("no_proxy", "")
        target = resolve(OtlpConfig(endpoint="http://collector.invalid:4318"), {}).metrics
        one = HttpTransport(target)
        assert one.send(BATCH, TIMEOUT_S) == Answer(Outcome.DELIVERED)
        one.close()
        request = proxy.next()
    assert request.path == "http://collector.invalid:4318/v1/metrics"
    assert request.headers["host"] == "collector.invalid:4318"
    assert request.headers["proxy-authorization"] == "Basic bWU6cHc="


def test_a_request_takes_no_longer_than_it_may_even_to_connect(transport):
    with socket.create_server(("127.0.0.1", 0), backlog=0) as silent:
        one = transport(f"http://127.0.0.1:{silent.getsockname()[1]}")
        began = time.monotonic()
        assert one.send(BATCH, SOON_S).outcome is Outcome.RETRY
        assert time.monotonic() - began < TIMEOUT_S
