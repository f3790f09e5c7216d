"""The whole output: what is written arrives, over both protocols, and closing is bounded."""

import logging
import os
import re
import socket
import subprocess
import sys
from contextlib import suppress

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from tests.unit.outputs.otlp.backend import GrpcBackend, HttpBackend, Reply
from tests.unit.outputs.otlp.material import ALL, EVENT, WEB, metrics_of, reading, sweep

from cgotel.config import ConfigError
from cgotel.contract import Lost
from cgotel.outputs.otlp import OtlpOutput
from cgotel.outputs.otlp.sender import Sender
from cgotel.outputs.otlp.settings import OtlpConfig

BACKENDS = {"http/protobuf": HttpBackend, "grpc": GrpcBackend}


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch):
    for name in list(os.environ):
        if name.startswith("OTEL_") or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)


@pytest.fixture
def output():
    made = []

    def make(**config):
        made.append(OtlpOutput(OtlpConfig(**config)))
        made[-1].start()
        return made[-1]

    yield make
    for one in made:
        with suppress(Lost):
            one.close(0)


def dropped(points):
    return {
        dict(s.attributes)["cgotel.export.reason"]: v
        for s, v in points
        if s.instrument.name == "cgotel.export.dropped"
    }


@pytest.mark.parametrize("protocol", BACKENDS)
def test_a_sweep_and_an_event_arrive(output, protocol):
    with BACKENDS[protocol]() as backend:
        one = output(
            endpoint=backend.url, protocol=protocol, resource={"deployment.environment.name": "test"}
        )
        one.write(sweep(reading(WEB)))
        request = backend.next()
        (found,) = ExportMetricsServiceRequest.FromString(request.body).resource_metrics
        assert sum(
            len(m.sum.data_points) + len(m.gauge.data_points) for m in metrics_of(found).values()
        ) == len(ALL)
        keys = {a.key for a in found.resource.attributes}
        assert {"host.name", "os.type", "container.id", "deployment.environment.name"} <= keys
        one.emit(EVENT)
        (logs,) = ExportLogsServiceRequest.FromString(backend.next().body).resource_logs
        assert logs.scope_logs[0].log_records[0].event_name == EVENT.name
        one.close(20)


def test_closing_sends_what_was_read(output):
    with HttpBackend() as backend:
        one = output(endpoint=backend.url)
        for _ in range(5):
            one.write(sweep(reading(WEB)))
        one.emit(EVENT)
        one.close(20)
        one.close(20)
        assert backend.requests.qsize() == 6


def test_closing_gives_up_on_a_receiver_that_hangs_and_says_what_is_lost(output, caplog):
    with HttpBackend(Reply(hang=True)) as backend:
        one = output(endpoint=backend.url)
        one.write(sweep(reading(WEB)))
        backend.next()
        with pytest.raises(Lost, match=f"{len(ALL)} items"):
            one.close(0.1)
        one.close(0.1)
        assert not one._senders()
    assert any(f"{len(ALL)} points are lost" in message for message in caplog.messages)


def test_a_signal_that_is_switched_off_sends_nothing(output, monkeypatch):
    monkeypatch.setenv("OTEL_METRICS_EXPORTER", "none")
    monkeypatch.setenv("OTEL_LOGS_EXPORTER", "none")
    with HttpBackend() as backend:
        one = output(endpoint=backend.url)
        one.write(sweep(reading(WEB)))
        one.emit(EVENT)
        one.close(20)
        assert backend.requests.empty()


def test_the_environment_is_enough(output, monkeypatch):
    with HttpBackend() as backend:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", backend.url)
        monkeypatch.setenv("OTEL_SERVICE_NAME", "mine")
        one = output()
        one.write(sweep(reading(WEB)))
        (found,) = ExportMetricsServiceRequest.FromString(backend.next().body).resource_metrics
        one.close(20)
    assert {a.key: a.value.string_value for a in found.resource.attributes}["service.name"] == "mine"


def test_a_request_that_is_refused_shows_in_its_points(output):
    with HttpBackend(Reply(400)) as backend:
        one = output(endpoint=backend.url)
        senders = one._senders()
        one.write(sweep(reading(WEB)))
        with pytest.raises(Lost):
            one.close(20)
        assert senders[0].dropped["refused"] == len(ALL)
    assert list(one.points()) == [] or dropped(one.points())["invalid"] == 0


def test_what_was_made_good_is_not_lost(output):
    with HttpBackend(Reply(400)) as backend:
        one = output(endpoint=backend.url)
        for _ in range(2):
            one.write(sweep(reading(WEB)))
        one.close(20)
        assert backend.requests.qsize() == 2


def test_what_was_rejected_out_of_the_last_request_is_lost(output):
    response = ExportMetricsServiceResponse()
    response.partial_success.rejected_data_points = 2
    with HttpBackend(Reply(body=response.SerializeToString())) as backend:
        one = output(endpoint=backend.url)
        one.write(sweep(reading(WEB)))
        with pytest.raises(Lost, match="2 items"):
            one.close(20)


def test_a_bad_setting_stops_it_before_anything_starts(output, monkeypatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json")
    with pytest.raises(ConfigError, match="must be http/protobuf or grpc"):
        output()


UNUSABLE = {
    "a certificate that is no PEM": ({"certificate": "/etc/passwd"}, {}),
    "a certificate that is not there": ({"certificate": "/nonexistent"}, {}),
    "a key without its certificate": ({"client_key": "/etc/passwd"}, {}),
    "a client certificate that is no PEM": ({"client_certificate": "/etc/passwd"}, {}),
    "a proxy of another kind": ({}, {"https_proxy": "socks5://proxy:1"}),
    "a host without a name": ({"endpoint": "https://a..b:1"}, {}),
    "a header that is none": ({"headers": {"a b": "secret"}}, {}),
    "a certificate of one signal": ({}, {"OTEL_EXPORTER_OTLP_LOGS_CERTIFICATE": "/etc/passwd"}),
}


@pytest.mark.parametrize("protocol", BACKENDS)
@pytest.mark.parametrize(("config", "variables"), UNUSABLE.values(), ids=UNUSABLE)
def test_what_cannot_be_used_is_found_by_a_check_and_before_a_thread(
    output, monkeypatch, protocol, config, variables
):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    config = {"endpoint": "https://localhost:1", "protocol": protocol, **config}
    with pytest.raises(ConfigError) as caught:
        OtlpOutput(OtlpConfig(**config)).check()
    assert "secret" not in str(caught.value)
    started = []
    monkeypatch.setattr(Sender, "start", started.append)
    with pytest.raises(ConfigError, match=re.escape(str(caught.value))):
        output(**config)
    assert not started


@pytest.mark.parametrize("protocol", BACKENDS)
def test_a_check_connects_to_nobody(protocol):
    with socket.create_server(("127.0.0.1", 0)) as receiver:
        endpoint = f"http://127.0.0.1:{receiver.getsockname()[1]}"
        OtlpOutput(OtlpConfig(endpoint=endpoint, protocol=protocol)).check()
        receiver.setblocking(False)
        with pytest.raises(BlockingIOError):
            receiver.accept()


def test_grpc_writes_nothing_past_the_log():
    code = """
from cgotel.outputs.otlp.batch import Batch
from cgotel.outputs.otlp.settings import OtlpConfig, resolve
from cgotel.outputs.otlp.transport import transport_to
config = OtlpConfig(endpoint="https://127.0.0.1:1", protocol="grpc")
one = transport_to(resolve(config, {}).metrics)
one._metadata = [("a b", "v")]
print(one.send(Batch.of([]), 20).outcome)
"""
    clean = {k: v for k, v in os.environ.items() if k != "GRPC_VERBOSITY"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=clean)
    assert (done.stdout.strip(), done.stderr) == ("refused", "")


def test_the_start_says_where_things_go_and_no_secret(output, caplog):
    caplog.set_level(logging.INFO)
    output(endpoint="http://127.0.0.1:1/base?key=secret", headers={"a": "secret"}, temporality="delta").close(
        0
    )
    assert (
        "otlp: metrics to http://127.0.0.1:1/base/v1/metrics (http/protobuf, gzip, 10 s), delta"
        in caplog.messages
    )
    assert "secret" not in caplog.text


def test_its_module_loads_nothing_heavy():
    heavy = ("opentelemetry", "grpc", "google.protobuf", "http.client", "ssl")
    code = f"import sys, cgotel.outputs.otlp; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
