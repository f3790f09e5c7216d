"""Events as collectd's notifications, which have 255 bytes and three severities."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from cgotel.model import AttributeValue, Event, Severity
from cgotel.outputs.collectd.identifiers import fitting, plugin_instance
from cgotel.outputs.collectd.types import EVENT_TYPE
from cgotel.outputs.text import visible

FAILURE, WARNING, OKAY = 1, 2, 4
"""NOTIF_FAILURE, NOTIF_WARNING, NOTIF_OKAY (collectd's plugin.h)."""

MOST_BYTES = 255

Meta: TypeAlias = Mapping[str, str | int | float | bool]


class Notification(NamedTuple):
    """What collectd is told of an event; ``time_s`` is Unix time in seconds."""

    plugin_instance: str
    type: str
    type_instance: str
    severity: int
    message: str
    time_s: float
    meta: Meta


def notification(event: Event) -> Notification:
    """The notification of an event; its message begins with the verdict, which is the body."""
    return Notification(
        plugin_instance(event.entity),
        EVENT_TYPE,
        fitting(event.name),
        _severity(event.severity),
        _clipped(visible(event.body)),
        event.time_ns / 1e9,
        {**_meta(event.attributes), "uid": event.uid},
    )


def _severity(number: int) -> int:
    if number >= Severity.ERROR:
        return FAILURE
    return WARNING if number >= Severity.WARN else OKAY


def _clipped(text: str) -> str:
    data = text.encode("utf-8", "backslashreplace")
    if len(data) <= MOST_BYTES:
        return text
    return data[: MOST_BYTES - 3].decode("utf-8", "ignore") + "..."


def _meta(attributes: Mapping[str, AttributeValue]) -> dict[str, str | int | float | bool]:
    return {key: ", ".join(v) if isinstance(v, tuple) else v for key, v in attributes.items()}
