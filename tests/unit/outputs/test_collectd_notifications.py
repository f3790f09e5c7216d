"""Events as notifications: the verdict first, the severity right, within 255 bytes."""

import pytest
from tests.unit.outputs.sweeps import cgroup

from cgotel.model import Event, Severity
from cgotel.outputs.collectd.notifications import FAILURE, MOST_BYTES, OKAY, WARNING, notification
from cgotel.outputs.collectd.types import STOCK

WEB = cgroup("/system.slice/web.service")


def event(severity=Severity.ERROR, body="it was killed", **attributes):
    return Event("cgotel.oom.kill", 1_500_000_000, 2, severity, WEB, body, "u1", attributes)


@pytest.mark.parametrize(
    ("severity", "expected"),
    [
        (Severity.INFO, OKAY),
        (Severity.WARN, WARNING),
        (Severity.WARN + 3, WARNING),
        (Severity.ERROR, FAILURE),
        (Severity.FATAL, FAILURE),
    ],
)
def test_severities(severity, expected):
    assert notification(event(severity)).severity == expected


def test_it_is_of_the_cgroup_at_the_time_of_the_event():
    told = notification(event(kills=2, evidence=("a", "b")))
    assert (told.plugin_instance, told.type_instance, told.time_s) == ("web.service", "cgotel.oom.kill", 1.5)
    assert told.type in STOCK
    assert told.meta == {"kills": 2, "evidence": "a, b", "uid": "u1"}


def test_a_message_is_of_one_line_and_cut_between_characters():
    told = notification(event(body="killed\n" + "é" * 200))
    assert told.message.startswith("killed\\n")
    assert told.message.endswith("é...")
    assert len(told.message.encode()) <= MOST_BYTES


def test_a_short_message_is_whole():
    assert notification(event()).message == "it was killed"
