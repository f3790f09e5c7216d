"""Which proxy the environment names for an endpoint."""

import pytest

from cgotel.config import ConfigError
from cgotel.outputs.otlp.endpoint import of_http
from cgotel.outputs.otlp.proxy import Proxy, proxy_for

PLAIN = of_http("x", "http://collector:4318", "")
SECURE = of_http("x", "https://collector:4318", "")


@pytest.fixture(autouse=True)
def _no_proxy_of_this_machine(monkeypatch):
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "REQUEST_METHOD"):
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


@pytest.mark.parametrize("url", ["socks5://proxy:1", "http://:1", "http://proxy:port"])
def test_a_proxy_that_cannot_be_used_is_refused_by_its_name(monkeypatch, url):
    monkeypatch.setenv("http_proxy", url)
    with pytest.raises(ConfigError, match=r"^http_proxy: must be an URL"):
        proxy_for(PLAIN)
