"""A certificate for the receivers of these tests, made anew for each run."""

from __future__ import annotations

from pathlib import Path

import pytest
import trustme


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ``receiver.pem``, which vouches for itself on localhost, and ``receiver.key``."""
    folder = tmp_path_factory.mktemp("certificates")
    authority = trustme.CA()
    issued = authority.issue_cert("localhost")
    chain = b"".join(blob.bytes() for blob in issued.cert_chain_pems)
    (folder / "receiver.pem").write_bytes(chain + authority.cert_pem.bytes())
    (folder / "receiver.key").write_bytes(issued.private_key_pem.bytes())
    return folder
