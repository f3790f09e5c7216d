"""OTLP over gRPC: one channel, and a call that takes a request as it is, already serialised."""

from __future__ import annotations

import re
from typing import Any

import grpc
from google.protobuf.message import DecodeError

from cgotel import __version__
from cgotel.outputs.otlp.answer import Answer, delivered, refused, retry, too_large
from cgotel.outputs.otlp.batch import Batch
from cgotel.outputs.otlp.proxy import check_proxy_of_grpc
from cgotel.outputs.otlp.settings import Target, Tls
from cgotel.outputs.otlp.tls import content, context_of

_RETRYABLE = frozenset(
    {
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.ABORTED,
        grpc.StatusCode.OUT_OF_RANGE,
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DATA_LOSS,
    }
)
_OPTIONS = (
    ("grpc.primary_user_agent", f"cgotel/{__version__}"),
    ("grpc.enable_retries", 0),  # the sender's own: it counts them
    ("grpc.initial_reconnect_backoff_ms", 1000),
    ("grpc.max_reconnect_backoff_ms", 10_000),  # two minutes by default: a receiver is back sooner
)


class GrpcTransport:
    """Calls Export of one service; the channel connects by itself when it is first used."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._metadata = [(name.lower(), value) for name, value in target.headers.items()]
        self._compression = grpc.Compression.Gzip if target.gzip else grpc.Compression.NoCompression
        check_proxy_of_grpc(target.endpoint)
        self._channel = _channel(target)
        self._export = self._channel.unary_unary(target.signal.method)

    def send(self, batch: Batch, timeout_s: float) -> Answer:
        """One call and its answer, within ``timeout_s`` seconds. See `Transport.send`."""
        try:
            body = self._export(
                batch.body(), timeout=timeout_s, metadata=self._metadata, compression=self._compression
            )
        except grpc.RpcError as error:
            return _judged(error)
        return delivered(self._target.signal, body)

    def close(self) -> None:
        """End the channel, and the call that waits for its answer."""
        self._channel.close()


def _channel(target: Target) -> Any:
    if not target.endpoint.secure:
        return grpc.insecure_channel(target.endpoint.authority, _OPTIONS)
    return grpc.secure_channel(target.endpoint.authority, _credentials(target.tls), _OPTIONS)


def _credentials(tls: Tls) -> Any:
    """What gRPC takes without a look, and fails with at each call, is looked at here."""
    context_of(tls)
    return grpc.ssl_channel_credentials(
        content(tls.certificate),
        content(tls.client_key or tls.client_certificate),
        content(tls.client_certificate),
    )


# grpc-core tries one address after the other and names the last: the same outage in many words
_ADDRESS = re.compile(r"\bipv[46]:\S+ ?")


def _judged(error: Any) -> Answer:
    """OTLP/gRPC response handling: opentelemetry-proto, docs/specification.md."""
    code, details = error.code(), error.details() or ""
    said = f"{code.name}: {_ADDRESS.sub('', details)}"
    after_s = _retry_delay_s(error.trailing_metadata() or ())
    if code is grpc.StatusCode.RESOURCE_EXHAUSTED:
        if after_s is not None:
            return retry(said, after_s)
        return too_large(said) if "larger than max" in details else refused(said)
    return retry(said, after_s) if code in _RETRYABLE else refused(said)


def _retry_delay_s(metadata: Any) -> float | None:
    """The delay of a google.rpc.RetryInfo among the details of a status, None if there is none."""
    packed = next((value for key, value in metadata if key == "grpc-status-details-bin"), None)
    if packed is None:
        return None
    from google.rpc.error_details_pb2 import RetryInfo
    from google.rpc.status_pb2 import Status

    try:
        for detail in Status.FromString(packed).details:
            info = RetryInfo()
            if detail.Unpack(info):
                return float(info.retry_delay.seconds + info.retry_delay.nanos / 1e9)
    except DecodeError:
        return None
    return None
