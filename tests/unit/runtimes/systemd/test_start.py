"""A system bus that is missing, refuses, or says nothing."""

import socket

import pytest

from cgotel.contract import Bookmark, Roots, State, Timeline, Unavailable
from cgotel.runtimes.systemd import SystemdSettings, SystemdWatcher
from cgotel.runtimes.systemd.bus import address


def watcher():
    return SystemdWatcher(SystemdSettings(), Roots(), Timeline(), Bookmark())


def refusal(watcher):
    with pytest.raises(Unavailable) as raised:
        watcher.start()
    watcher.close()
    watcher.close()
    return raised.value.status


def test_no_socket(tmp_path, monkeypatch):
    monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", f"unix:path={tmp_path}/none")
    status = refusal(watcher())
    assert (status.name, status.state) == ("systemd", State.ABSENT)
    assert "none" in status.reason
    assert status.remedy


def test_a_socket_that_nobody_serves(tmp_path, monkeypatch):
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(f"{tmp_path}/bus")
        monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", f"unix:path={tmp_path}/bus")
        assert "refused" in refusal(watcher()).reason


def test_a_bus_that_hangs(tmp_path, monkeypatch):
    monkeypatch.setattr("cgotel.runtimes.systemd.bus.CONNECT_S", 0.2)
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(f"{tmp_path}/bus")
        bound.listen()
        monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", f"unix:path={tmp_path}/bus")
        assert refusal(watcher()).state is State.FAILED


@pytest.mark.parametrize("wrong", ["nonsense", "unix:", "quic:host=a"])
def test_an_address_that_is_none(wrong, monkeypatch):
    monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", wrong)
    assert refusal(watcher()).state is State.FAILED


def test_the_socket_is_looked_for_where_the_host_is_mounted():
    assert address(Roots(), {}) == "unix:path=/run/dbus/system_bus_socket"
    assert address(Roots(proc="/host/proc"), {}) == "unix:path=/host/run/dbus/system_bus_socket"
    assert address(Roots(), {"DBUS_SYSTEM_BUS_ADDRESS": "unix:path=/x"}) == "unix:path=/x"
