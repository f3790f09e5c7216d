"""The transport that a protocol asks for."""

from cgotel.outputs.otlp.grpc import GrpcTransport
from cgotel.outputs.otlp.http import HttpTransport
from cgotel.outputs.otlp.settings import OtlpConfig, resolve
from cgotel.outputs.otlp.transport import transport_to


def test_each_protocol_has_its_transport():
    for protocol, kind in (("grpc", GrpcTransport), ("http/protobuf", HttpTransport)):
        made = transport_to(resolve(OtlpConfig(protocol=protocol), {}).metrics)
        assert isinstance(made, kind)
        made.close()
