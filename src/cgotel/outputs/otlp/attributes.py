"""Attributes as opentelemetry-proto messages."""

from __future__ import annotations

from collections.abc import Iterable

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue

from cgotel.model import AttributeValue

_INT64 = range(-(2**63), 2**63)


def key_values(attributes: Iterable[tuple[str, AttributeValue]]) -> list[KeyValue]:
    """Attributes in the order given."""
    return [KeyValue(key=plain(key), value=_any_value(value)) for key, value in attributes]


def plain(text: str) -> str:
    """Text that UTF-8 can hold: what stands for a byte that was no text is written as an escape."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def _any_value(value: AttributeValue) -> AnyValue:
    match value:
        case bool():
            return AnyValue(bool_value=value)
        case int():
            return AnyValue(int_value=value) if value in _INT64 else AnyValue(string_value=str(value))
        case float():
            return AnyValue(double_value=value)
        case str():
            return AnyValue(string_value=plain(value))
        case _:
            return AnyValue(array_value=ArrayValue(values=[_any_value(item) for item in value]))
