"""Which headers a request may carry, over HTTP and over gRPC."""

import pytest

from cgotel.config import ConfigError
from cgotel.outputs.otlp.headers import checked

PROTOCOLS = ("http/protobuf", "grpc")


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("name", ["authorization", "X-Scope-OrgID", "a_b", "a.b", "x-binary"])
def test_common_names_are_taken_as_they_are(protocol, name):
    assert checked({name: "Bearer x"}, protocol) == {name: "Bearer x"}


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("name", ["", "a b", "a:b", ":path", "a/b", "a\n", "a(b", "é", "a\x7f"])
def test_a_name_that_is_no_token_is_refused(protocol, name):
    with pytest.raises(ConfigError, match="must be a token of RFC 9110"):
        checked({name: "secret"}, protocol)


@pytest.mark.parametrize("name", ["a!b", "x-bin", "X-BIN", "a*"])
def test_grpc_takes_fewer_names(name):
    assert checked({name: "v"}, "http/protobuf")
    with pytest.raises(ConfigError, match="over gRPC"):
        checked({name: "v"}, "grpc")


@pytest.mark.parametrize("value", ["secret\n", "secret\r\nx: y", "secr\xe9t", "secret\x00"])
def test_a_value_that_cannot_be_sent_is_refused_and_not_shown(value):
    with pytest.raises(ConfigError, match="'a': the value must be printable ASCII") as caught:
        checked({"a": value}, "grpc")
    assert "secr" not in str(caught.value)
