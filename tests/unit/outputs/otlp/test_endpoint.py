"""What an URL means over HTTP and over gRPC."""

import pytest

from cgotel.config import ConfigError
from cgotel.outputs.otlp.endpoint import of_grpc, of_http


@pytest.mark.parametrize(
    ("url", "append", "shown"),
    [
        ("http://localhost:4318", "/v1/metrics", "http://localhost:4318/v1/metrics"),
        ("http://localhost:4318/", "/v1/metrics", "http://localhost:4318/v1/metrics"),
        ("https://otlp.example/prefix/", "/v1/logs", "https://otlp.example/prefix/v1/logs"),
        ("http://localhost:4318/own/path", "", "http://localhost:4318/own/path"),
        ("http://localhost:4318", "", "http://localhost:4318/"),
    ],
)
def test_a_path_is_appended_to_a_base_and_to_nothing_else(url, append, shown):
    assert str(of_http("x", url, append)) == shown


def test_a_query_is_sent_and_not_shown():
    endpoint = of_http("x", "https://[::1]/p?token=secret", "")
    assert (endpoint.query, endpoint.host, endpoint.port) == ("token=secret", "::1", 443)
    assert "secret" not in f"{endpoint} {endpoint!r}"


@pytest.mark.parametrize(
    "url",
    [
        "localhost:4318",
        "ftp://x",
        "http://",
        "/v1",
        "http://x:port",
        "http://a b",
        "http://é",
        "http://a..b:1",
        "http://.",
        f"http://{'x' * 64}.org",
    ],
)
def test_what_is_no_url_is_refused_by_the_name_of_its_variable(url):
    with pytest.raises(ConfigError, match=r"^ENDPOINT: "):
        of_http("ENDPOINT", url, "")


@pytest.mark.parametrize("of", [lambda url: of_http("E", url, ""), lambda url: of_grpc("E", url, None)])
def test_a_password_is_refused_and_not_shown(of):
    with pytest.raises(ConfigError, match=r"^E: must not hold a user or password") as caught:
        of("https://me:secret@host:4317")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "insecure", "authority", "secure"),
    [
        ("http://collector:4317", None, "collector:4317", False),
        ("http://collector:4317/ignored", False, "collector:4317", False),
        ("https://collector:4317", True, "collector:4317", True),
        ("collector:4317", None, "collector:4317", True),
        ("collector:4317", True, "collector:4317", False),
        ("dns:///collector:4317", True, "dns:///collector:4317", False),
        ("unix:/run/otel.sock", True, "unix:/run/otel.sock", False),
    ],
)
def test_a_scheme_says_whether_grpc_has_tls_and_insecure_only_without_one(url, insecure, authority, secure):
    endpoint = of_grpc("x", url, insecure)
    assert (endpoint.authority, endpoint.secure) == (authority, secure)


@pytest.mark.parametrize("url", ["a..b:1", "https://a..b"])
def test_grpc_has_the_same_rule_for_names(url):
    with pytest.raises(ConfigError, match=r"^E: its host name cannot be looked up"):
        of_grpc("E", url, True)
