"""Signals as they come from the bus, and whom they are believed from."""

import pytest
from dbus_fast import Message, MessageType, Variant

from cgotel.contract import Bookmark, Roots, Timeline
from cgotel.evidence import HostState, UserspaceOom
from cgotel.runtimes.systemd.listener import Listener

OWNERS = {
    "org.freedesktop.systemd1": ":1.0",
    "org.freedesktop.oom1": ":1.5",
    "org.freedesktop.login1": ":1.6",
}


def signal(sender, path, interface, member, signature, *body):
    return Message(
        message_type=MessageType.SIGNAL, sender=sender, path=path, interface=interface, member=member,
        signature=signature, body=list(body),
    )  # fmt: skip


def killed(sender):
    return signal(
        sender, "/org/freedesktop/oom1", "org.freedesktop.oom1.Manager", "Killed", "ss",
        "/system.slice/web.service", "memory-pressure",
    )  # fmt: skip


def prepare(member, begins, sender=":1.6"):
    return signal(sender, "/org/freedesktop/login1", "org.freedesktop.login1.Manager", member, "b", begins)


@pytest.fixture
def said():
    return []


@pytest.fixture
def listener(said):
    listener = Listener(Roots(), Timeline(), Bookmark())
    listener._owners.update(OWNERS)
    listener._report = said.append
    return listener


def test_a_kill_by_oomd(listener, said):
    listener._take(killed(":1.5"))
    [kill] = said
    assert isinstance(kill, UserspaceOom)
    assert (kill.by, kill.cgroup, kill.reason) == (
        "systemd-oomd",
        "/system.slice/web.service",
        "memory-pressure",
    )


def test_a_kill_that_is_told_twice_is_one(listener, said):
    for _ in range(3):
        listener._take(killed(":1.5"))
    assert len(said) == 1


@pytest.mark.parametrize("sender", [":1.99", ":1.6", None])
def test_a_signal_in_anothers_name_is_not_believed(listener, said, sender):
    """Any peer may send any signal to us alone; the bus stamps it with its sender only."""
    listener._take(killed(sender))
    assert said == []


def test_a_name_that_changes_hands(listener, said):
    change = (
        "org.freedesktop.DBus",
        "/org/freedesktop/DBus",
        "org.freedesktop.DBus",
        "NameOwnerChanged",
        "sss",
    )
    listener._take(signal(*change, "org.freedesktop.oom1", ":1.5", ""))
    listener._take(killed(":1.5"))
    assert said == []
    listener._take(signal(*change, "org.freedesktop.oom1", "", ":1.7"))
    listener._take(killed(":1.7"))
    assert len(said) == 1


def test_sleep_and_shutdown(listener, said):
    listener._take(prepare("PrepareForSleep", True))
    listener._take(prepare("PrepareForSleep", False))
    listener._take(prepare("PrepareForShutdown", False))  # a shutdown that was called off
    listener._take(prepare("PrepareForShutdown", True))
    assert [(type(piece), piece.state) for piece in said] == [
        (HostState, "suspend"), (HostState, "resume"), (HostState, "shutdown"),
    ]  # fmt: skip


def test_a_shutdown_without_logind_is_told_once(listener, said):
    listener._units._report = said.append
    for unit in ("web.mount", "shutdown.target", "shutdown.target"):
        listener._take(
            signal(
                ":1.0", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager", "JobNew", "uos",
                1, "/org/freedesktop/systemd1/job/1", unit,
            )
        )  # fmt: skip
    assert [piece.state for piece in said] == ["shutdown"]


def test_a_change_of_what_is_no_unit_of_ours_is_nothing(listener, said):
    for path in ("/org/freedesktop/systemd1/unit/dev_2dsda_2edevice", "/elsewhere"):
        listener._take(
            signal(
                ":1.0", path, "org.freedesktop.DBus.Properties", "PropertiesChanged", "sa{sv}as",
                "org.freedesktop.systemd1.Unit", {"ActiveState": Variant("s", "active")}, [],
            )
        )  # fmt: skip
    assert said == []
