"""Attributes as messages, against the SDK exporter's encoder."""

import pytest
from opentelemetry.exporter.otlp.proto.common._internal import _encode_attributes

from cgotel.outputs.otlp.attributes import key_values, plain


def test_every_kind_of_value_is_encoded_as_by_the_sdk():
    attributes = {"s": "text", "e": "é", "i": -5, "d": 0.5, "b": True, "l": ("a", "b"), "none": ""}
    assert key_values(attributes.items()) == _encode_attributes(attributes)


@pytest.mark.parametrize("name", ["a\udcffb", "\ud800"])
def test_a_name_that_was_no_text_is_escaped_and_stays_distinct(name):
    (found,) = key_values([("path", name)])
    assert found.value.string_value == plain(name)
    assert "\\ud" in found.value.string_value


def test_an_integer_beyond_int64_is_written_as_text():
    (found,) = key_values([("big", 2**63)])
    assert found.value.string_value == str(2**63)
