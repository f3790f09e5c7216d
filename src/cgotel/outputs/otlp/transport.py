"""What carries a request, over either protocol."""

from __future__ import annotations

import os
from typing import Protocol

from cgotel.outputs.otlp.answer import Answer
from cgotel.outputs.otlp.batch import Batch
from cgotel.outputs.otlp.settings import Target


class Transport(Protocol):
    """One connection to one receiver for one signal."""

    def send(self, batch: Batch, timeout_s: float) -> Answer:
        """Send one request and wait for its answer, ``timeout_s`` seconds at most.

        Raises nothing that a network or a receiver provokes; after anything else the next request
        begins anew.
        """

    def close(self) -> None:
        """End the connection, from any thread, and with it the request that is under way."""


def transport_to(target: Target) -> Transport:
    """The transport that a target asks for, not yet connected. Raises `ConfigError`."""
    if target.protocol == "grpc":
        os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # it writes to stderr, past the log, what calls tell
        from cgotel.outputs.otlp.grpc import GrpcTransport

        return GrpcTransport(target)
    from cgotel.outputs.otlp.http import HttpTransport

    return HttpTransport(target)
