"""The names of the signals, against the services that opentelemetry-proto defines."""

import pytest
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2

from cgotel.outputs.otlp.signals import LOGS, METRICS


@pytest.mark.parametrize(("signal", "module"), [(METRICS, metrics_service_pb2), (LOGS, logs_service_pb2)])
def test_the_method_is_the_export_of_the_service(signal, module):
    (service,) = module.DESCRIPTOR.services_by_name.values()
    (method,) = service.methods
    assert signal.method == f"/{service.full_name}/{method.name}"
    assert signal.path == f"/v1/{signal.name}"
