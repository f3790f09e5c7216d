"""TLS files are looked through before anything connects."""

import pytest
from cryptography.hazmat.primitives import serialization

from cgotel.config import ConfigError
from cgotel.outputs.otlp.settings import Tls
from cgotel.outputs.otlp.tls import content, context_of


def test_good_files_are_taken(certificates):
    pem, key = str(certificates / "receiver.pem"), str(certificates / "receiver.key")
    assert context_of(Tls(pem, key, pem)).cert_store_stats()["x509"] > 0
    assert content(pem).startswith(b"-----BEGIN")
    assert content(None) is None


def test_a_key_that_wants_a_password_is_refused_and_nobody_is_asked(certificates, tmp_path):
    plain = serialization.load_pem_private_key((certificates / "receiver.key").read_bytes(), None)
    locked = tmp_path / "locked.key"
    locked.write_bytes(
        plain.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"x"),
        )
    )
    with pytest.raises(ConfigError, match=r"locked\.key"):
        context_of(Tls(None, str(locked), str(certificates / "receiver.pem")))


@pytest.mark.parametrize("path", ["/etc/passwd", "/nonexistent", "/etc", "a\0b"])
def test_what_is_no_certificate_is_refused(path):
    with pytest.raises(ConfigError, match="TLS files of OTLP"):
        context_of(Tls(path))


def test_a_path_that_may_hold_a_password_is_not_shown():
    for read in (content, lambda path: context_of(Tls(path))):
        with pytest.raises(ConfigError) as caught:
            read("https://me:hush@host")
        assert "hush" not in str(caught.value)
