"""The variables of the specification, and one clear error for each that cannot be read."""

import pytest

from cgotel.config import ConfigError
from cgotel.outputs.otlp.environment import Environment
from cgotel.outputs.otlp.signals import LOGS, METRICS

PREFIX = "OTEL_EXPORTER_OTLP_"


def environment(**variables):
    return Environment(variables)


def test_a_variable_of_the_signal_stands_before_the_general_one():
    both = environment(**{f"{PREFIX}PROTOCOL": "grpc", f"{PREFIX}METRICS_PROTOCOL": "http/protobuf"})
    assert both.text(METRICS, "PROTOCOL") == "http/protobuf"
    assert both.text(LOGS, "PROTOCOL") == "grpc"


def test_an_empty_variable_is_an_unset_one():
    assert environment(A="  ").find("A") is None
    assert environment().find("A") is None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("10000", 10), ("1000", 1), ("500", 500), ("10", 10), ("2.5", 2.5), ("86400000", 86_400)],
)
def test_a_timeout_is_milliseconds_from_a_thousand_on_and_seconds_below(text, seconds):
    variables = environment(T=text)
    assert variables.seconds(variables.find("T")) == seconds


@pytest.mark.parametrize("text", ["0", "-5", "soon", "nan", "inf", "1e30", "86400001"])
def test_a_timeout_that_is_none_is_refused(text):
    variables = environment(T=text)
    with pytest.raises(ConfigError, match=r"^T='.*': must be a positive number"):
        variables.seconds(variables.find("T"))


def test_pairs_are_percent_decoded():
    variables = environment(H="a=1, b = x%20y ,c=d=e,,d=")
    assert variables.pairs(variables.find("H")) == {"a": "1", "b": "x y", "c": "d=e", "d": ""}


@pytest.mark.parametrize("text", ["a=1,secret", "a=1,=secret", "a=1,se cret=x"])
def test_a_pair_that_is_none_is_named_by_its_place_and_never_shown(text):
    variables = environment(H=text)
    with pytest.raises(ConfigError, match=r"^H: entry 2 is not name=value$"):
        variables.pairs(variables.find("H"))


def test_flags_are_true_or_false():
    variables = environment(A="TRUE", B="false", C="yes")
    assert variables.flag(variables.find("A")) is True
    assert variables.flag(variables.find("B")) is False
    assert variables.flag(variables.find("D")) is None
    with pytest.raises(ConfigError, match=r"^C='yes': must be true or false$"):
        variables.flag(variables.find("C"))


def test_the_service_name_has_its_own_variable():
    attributes = "service.name=other,deployment.environment.name=prod"
    assert environment(OTEL_RESOURCE_ATTRIBUTES=attributes, OTEL_SERVICE_NAME="mine").resource() == {
        "service.name": "mine",
        "deployment.environment.name": "prod",
    }


@pytest.mark.parametrize(
    ("variables", "metrics", "logs"),
    [
        ({}, True, True),
        ({"OTEL_SDK_DISABLED": "true"}, False, False),
        ({"OTEL_METRICS_EXPORTER": "none"}, False, True),
        ({"OTEL_METRICS_EXPORTER": "otlp", "OTEL_LOGS_EXPORTER": "none"}, True, False),
    ],
)
def test_a_signal_can_be_switched_off(variables, metrics, logs):
    found = Environment(variables)
    assert (found.exports(METRICS), found.exports(LOGS)) == (metrics, logs)


def test_another_exporter_than_otlp_is_refused():
    with pytest.raises(ConfigError, match="OTEL_METRICS_EXPORTER='prometheus': must be otlp or none"):
        environment(OTEL_METRICS_EXPORTER="prometheus").exports(METRICS)
