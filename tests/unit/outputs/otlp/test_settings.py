"""The configuration before the environment before the defaults, and no secret in a message."""

import math

import msgspec
import pytest

from cgotel.config import ConfigError, Document
from cgotel.outputs.otlp.settings import OtlpConfig, resolve

PREFIX = "OTEL_EXPORTER_OTLP_"


def plan(config=None, **variables):
    names = {
        (name if name.startswith("OTEL_") else PREFIX + name): value for name, value in variables.items()
    }
    return resolve(config or OtlpConfig(), names)


def test_the_defaults_are_the_specification_s():
    found = plan()
    assert str(found.metrics) == "metrics to http://localhost:4318/v1/metrics (http/protobuf, gzip, 10 s)"
    assert str(found.logs) == "logs to http://localhost:4318/v1/logs (http/protobuf, gzip, 10 s)"
    assert (found.delta, found.resource, found.notes) == (False, {}, ())


def test_every_variable_is_honoured():
    found = plan(
        ENDPOINT="https://c:1/base",
        LOGS_ENDPOINT="https://logs:2/in",
        HEADERS="api-key=s%20t",
        LOGS_HEADERS="other=1",
        TIMEOUT="3000",
        COMPRESSION="none",
        LOGS_COMPRESSION="gzip",
        CERTIFICATE="ca.pem",
        CLIENT_KEY="k.pem",
        CLIENT_CERTIFICATE="c.pem",
        METRICS_CLIENT_KEY="m.pem",
        METRICS_TEMPORALITY_PREFERENCE="Delta",
        OTEL_RESOURCE_ATTRIBUTES="a=b",
        OTEL_SERVICE_NAME="svc",
    )
    metrics, logs = found.metrics, found.logs
    assert str(metrics) == "metrics to https://c:1/base/v1/metrics (http/protobuf, not compressed, 3 s)"
    assert str(logs) == "logs to https://logs:2/in (http/protobuf, gzip, 3 s)"
    assert (metrics.headers, logs.headers) == ({"api-key": "s t"}, {"other": "1"})
    assert (metrics.tls.certificate, metrics.tls.client_key, metrics.tls.client_certificate) == (
        "ca.pem",
        "m.pem",
        "c.pem",
    )
    assert logs.tls.client_key == "k.pem"
    assert found.delta
    assert found.resource == {"a": "b", "service.name": "svc"}
    assert found.notes == ("OTEL_EXPORTER_OTLP_TIMEOUT='3000' is read as 3 s",)


def test_each_signal_may_have_its_own_protocol():
    found = plan(PROTOCOL="grpc", LOGS_PROTOCOL="http/protobuf")
    assert str(found.metrics) == "metrics to http://localhost:4317 (grpc, gzip, 10 s)"
    assert str(found.logs) == "logs to http://localhost:4318/v1/logs (http/protobuf, gzip, 10 s)"


def test_grpc_takes_an_endpoint_without_a_scheme():
    assert plan(PROTOCOL="grpc", ENDPOINT="c:4317", INSECURE="true").metrics.endpoint.secure is False
    assert plan(PROTOCOL="grpc", ENDPOINT="c:4317").metrics.endpoint.secure is True


def test_the_file_stands_before_the_environment():
    config = OtlpConfig(
        endpoint="http://file:1",
        protocol="http/protobuf",
        headers={"a": "file"},
        timeout=2.5,
        compression="gzip",
        temporality="cumulative",
        certificate="file.pem",
        resource={"a": "file", "n": 7},
    )
    found = plan(
        config,
        METRICS_ENDPOINT="http://env:2",
        PROTOCOL="grpc",
        HEADERS="a=env",
        TIMEOUT="9000",
        COMPRESSION="none",
        METRICS_TEMPORALITY_PREFERENCE="delta",
        CERTIFICATE="env.pem",
        OTEL_RESOURCE_ATTRIBUTES="a=env,b=env",
    )
    assert str(found.metrics) == "metrics to http://file:1/v1/metrics (http/protobuf, gzip, 2.5 s)"
    assert (found.metrics.headers, found.metrics.tls.certificate) == ({"a": "file"}, "file.pem")
    assert (found.delta, found.notes) == (False, ())
    assert found.resource == {"a": "file", "b": "env", "n": 7}


def test_an_endpoint_of_its_own_stands_before_the_base():
    config = OtlpConfig(endpoint="http://base:1", logs_endpoint="http://logs:2/x")
    found = plan(config)
    assert str(found.metrics.endpoint) == "http://base:1/v1/metrics"
    assert str(found.logs.endpoint) == "http://logs:2/x"


def test_lowmemory_leaves_observed_counters_cumulative():
    assert plan(METRICS_TEMPORALITY_PREFERENCE="lowmemory").delta is False


def test_a_signal_that_is_switched_off_has_no_target():
    found = plan(OTEL_SDK_DISABLED="true", OTEL_CONFIG_FILE="otel.yaml")
    assert (found.metrics, found.logs) == (None, None)
    assert found.notes == (
        "OTEL_SDK_DISABLED=true: nothing is exported",
        "OTEL_CONFIG_FILE is not supported and ignored; use --config",
    )
    assert plan(OTEL_METRICS_EXPORTER="none").metrics is None
    assert plan(OTEL_LOGS_EXPORTER="none").logs is None


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("PROTOCOL", "http/json", "OTEL_EXPORTER_OTLP_PROTOCOL='http/json': must be http/protobuf or grpc"),
        ("LOGS_PROTOCOL", "udp", "OTEL_EXPORTER_OTLP_LOGS_PROTOCOL='udp': must be http/protobuf or grpc"),
        ("COMPRESSION", "zstd", "OTEL_EXPORTER_OTLP_COMPRESSION='zstd': must be gzip or none"),
        ("TIMEOUT", "10s", "OTEL_EXPORTER_OTLP_TIMEOUT='10s': must be a positive number of milliseconds"),
        (
            "ENDPOINT",
            "localhost",
            "OTEL_EXPORTER_OTLP_ENDPOINT: must be an URL such as http://localhost:4318",
        ),
        ("METRICS_ENDPOINT", "http://h:x", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: not an URL"),
        ("HEADERS", "secret", "OTEL_EXPORTER_OTLP_HEADERS: entry 1 is not name=value"),
        ("HEADERS", "key=secret%0Asecret", "OTLP header 'key': the value must be printable ASCII"),
        (
            "METRICS_TEMPORALITY_PREFERENCE",
            "both",
            "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE='both': must be cumulative or delta or low",
        ),
        ("HEADERS", "app/key=secret", "OTLP header 'app/key': the name must be a token of RFC 9110"),
        ("ENDPOINT", "http://a..b:1", "OTEL_EXPORTER_OTLP_ENDPOINT: its host name cannot be looked up"),
        ("CLIENT_KEY", "k.pem", "OTLP client_key is set without client_certificate"),
        (
            "TIMEOUT",
            "1e30",
            "OTEL_EXPORTER_OTLP_TIMEOUT='1e30': must be a positive number of milliseconds, 8",
        ),
        ("OTEL_SDK_DISABLED", "1", "OTEL_SDK_DISABLED='1': must be true or false"),
        ("OTEL_RESOURCE_ATTRIBUTES", "a", "OTEL_RESOURCE_ATTRIBUTES: entry 1 is not name=value"),
    ],
)
def test_a_bad_value_is_one_line_that_names_the_variable(variable, value, message):
    with pytest.raises(ConfigError) as caught:
        plan(**{variable: value})
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)
    assert "secret" not in str(caught.value)


SECRET = "(left out here: it may hold a password)"
CHOICES = ["PROTOCOL", "COMPRESSION", "INSECURE", "METRICS_TEMPORALITY_PREFERENCE", "TIMEOUT"]
CHOICES += ["OTEL_SDK_DISABLED", "OTEL_METRICS_EXPORTER", "OTEL_LOGS_EXPORTER"]


@pytest.mark.parametrize("variable", CHOICES)
@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("https://me:hush@host", SECRET),
        ("Password=hush", SECRET),
        ("x" * 80 + "hush", repr("x" * 80) + "..."),
    ],
)
def test_no_error_shows_what_may_be_a_secret_or_more_than_a_line(variable, value, found):
    with pytest.raises(ConfigError) as caught:
        plan(**({"PROTOCOL": "grpc"} | {variable: value}))
    assert found in str(caught.value)
    assert "hush" not in str(caught.value)


def test_no_header_name_shows_what_may_be_a_secret():
    with pytest.raises(ConfigError) as caught:
        plan(OtlpConfig(headers={"user@hush": "x"}))
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize("key", ["protocol", "compression", "temporality"])
def test_no_error_of_the_file_shows_what_may_be_a_secret(key):
    with pytest.raises(ValueError, match="left out here") as caught:
        OtlpConfig(**{key: "https://me:hush@host"})
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"protocol": "http/json"}, "protocol = 'http/json': must be http/protobuf or grpc"),
        ({"compression": "br"}, "compression = 'br': must be gzip or none"),
        ({"temporality": "x"}, "temporality = 'x': must be cumulative or delta or lowmemory"),
        ({"timeout": 0}, "expected a number > 0"),
        ({"timeout": 1e10}, "expected a number <= 86400"),
        ({"timeout": math.inf}, "must be a finite number, not inf"),
        ({"timeout": math.nan}, "must be a finite number, not nan"),
        ({"retry_for": 1e12}, "expected a number <= 86400"),
        ({"retry_for": math.nan}, "must be a finite number, not nan"),
        ({"endpont": "x"}, "did you mean 'endpoint'"),
    ],
)
def test_a_bad_key_of_the_file_is_one_line_too(table, message):
    document = Document("c.toml", {"outputs": {"otlp": table}}, {})
    with pytest.raises(ConfigError) as caught:
        document.table("outputs.otlp", OtlpConfig)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_headers_are_marked_as_a_secret_for_whoever_prints_the_configuration():
    (headers,) = [f for f in msgspec.structs.fields(OtlpConfig) if f.name == "headers"]
    assert any(
        isinstance(kind, msgspec.inspect.Metadata) and kind.extra == {"secret": True}
        for kind in msgspec.inspect.type_info(headers.type).types
    )
