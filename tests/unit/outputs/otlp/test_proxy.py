"""Which proxy the environment names for an endpoint."""

import pytest

from cgotel.config import ConfigError
from cgotel.outputs.otlp.endpoint import of_grpc, of_http
from cgotel.outputs.otlp.proxy import Proxy, check_proxy_of_grpc, proxy_for

PLAIN = of_http("x", "http://collector:4318", "")
SECURE = of_http("x", "https://collector:4318", "")


@pytest.fixture(autouse=True)
def _no_proxy_of_this_machine(monkeypatch):
    for name in ("grpc_proxy", "http_proxy", "https_proxy", "all_proxy", "no_proxy", "REQUEST_METHOD"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def test_there_is_none_unless_the_environment_names_one():
    assert proxy_for(PLAIN) is None


def test_each_scheme_has_its_own(monkeypatch):
    monkeypatch.setenv("https_proxy", "http://proxy:3128")
    assert proxy_for(PLAIN) is None
    assert proxy_for(SECURE) == Proxy("proxy", 3128)
    monkeypatch.setenv("http_proxy", "proxy")
    assert proxy_for(PLAIN) == Proxy("proxy", 8080)


def test_no_proxy_is_honoured(monkeypatch):
    monkeypatch.setenv("http_proxy", "http://proxy:3128")
    monkeypatch.setenv("no_proxy", "localhost,collector")
    assert proxy_for(PLAIN) is None


def test_a_password_is_sent_and_not_shown(monkeypatch):
    monkeypatch.setenv("http_proxy", "http://me:se%40cret@proxy:1")
    proxy = proxy_for(PLAIN)
    assert proxy.headers == {"proxy-authorization": "Basic bWU6c2VAY3JldA=="}
    assert "secret" not in repr(proxy)
    assert "bWU6" not in repr(proxy)


@pytest.mark.parametrize("url", ["socks5://proxy:1", "http://:1", "http://proxy:port", "http://a..b:1"])
def test_a_proxy_that_cannot_be_used_is_refused_by_its_name(monkeypatch, url):
    monkeypatch.setenv("http_proxy", url)
    with pytest.raises(ConfigError, match=r"^http_proxy: must be an URL"):
        proxy_for(PLAIN)


@pytest.mark.parametrize("name", ["grpc_proxy", "https_proxy", "http_proxy"])
def test_a_proxy_that_grpc_would_leave_aside_is_refused(monkeypatch, name):
    target = of_grpc("x", "collector:4317", True)
    check_proxy_of_grpc(target)
    monkeypatch.setenv(name, "socks5://proxy:1")
    with pytest.raises(ConfigError, match=f"^{name}: must be an URL"):
        check_proxy_of_grpc(target)
    check_proxy_of_grpc(of_grpc("x", "unix:/run/otel.sock", True))
    monkeypatch.setenv("no_proxy", "collector")
    check_proxy_of_grpc(target)
    monkeypatch.setenv("no_proxy", "")
    monkeypatch.setenv("grpc_proxy", "http://proxy:1")
    check_proxy_of_grpc(target)
