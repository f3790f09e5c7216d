"""The plugin behind the callbacks, over a host of files and a stand-in for the daemon."""

import logging
import threading

import pytest
from tests.peers.kernel_tree import CONTAINER, CONTAINER_ID, MIB, UNWATCHED, KernelTree
from tests.peers.waiting import eventually
from tests.unit.collectd.fake_collectd import FakeCollectd, node

from cgotel.collectd import plugin as plugin_module
from cgotel.collectd.plugin import Plugin
from cgotel.outputs.collectd.types import OWN, STOCK, TYPES
from cgotel.sweeper import Sweeper


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A small host, to which HOST_* lead."""
    host = KernelTree(tmp_path / "host")
    for name, value in host.environment.items():
        monkeypatch.setenv(name, value)
    return host


@pytest.fixture
def started(tree, request):
    """A plugin that was configured and initialised, and its daemon."""

    def start(*nodes, types=TYPES):
        daemon = FakeCollectd(types)
        plugin = Plugin(daemon)
        request.addfinalizer(plugin.shutdown)
        if nodes:
            plugin.configure(nodes)
        plugin.init()
        return plugin, daemon

    yield start
    logging.getLogger("cgotel").propagate = True


def test_a_read_dispatches_one_sweep_at_one_time(started):
    _plugin, daemon = started(node("Interval", 60.0))
    [(read, interval)] = daemon.reads
    assert interval == 60.0
    read()
    assert len({value["time"] for value in daemon.values}) == 1
    assert {value["interval"] for value in daemon.values} == {60.0}
    assert {value["plugin"] for value in daemon.values} == {"cgotel"}
    [used] = [
        value
        for value in daemon.values
        if (value["plugin_instance"], value["type"], value["type_instance"])
        == (CONTAINER_ID[:12], "memory", "used")
    ]
    assert used["values"] == [300 * MIB]
    assert used["meta"] == {"process.linux.cgroup": f"0::{CONTAINER}"}


def test_metadata_may_be_left_out(started):
    plugin, daemon = started(node("Meta", False))
    plugin.read()
    assert [value for value in daemon.values if value["meta"]] == []
    assert daemon.values


def test_no_identifier_is_dispatched_twice(started):
    plugin, daemon = started(node("Interval", 60.0))
    plugin.read()
    names = [(value["plugin_instance"], value["type"], value["type_instance"]) for value in daemon.values]
    assert len(set(names)) == len(names)


def test_without_an_interval_collectd_decides(started):
    plugin, daemon = started()
    assert daemon.reads[0][1] is None
    plugin.read()
    assert {value["interval"] for value in daemon.values} == {0}


def test_a_fault_keeps_it_off(started):
    _plugin, daemon = started(node("Interval", "x"))
    assert daemon.reads == []
    assert "option Interval: must be one number" in daemon.said("error")
    assert "stays off" in daemon.said("error")


def test_two_blocks_are_a_fault(started):
    daemon = FakeCollectd()
    plugin = Plugin(daemon)
    plugin.configure([])
    plugin.configure([])
    plugin.init()
    assert daemon.reads == []
    assert "two <Module" in daemon.said("error")


def test_it_begins_once(started):
    plugin, daemon = started()
    plugin.init()
    assert len(daemon.reads) == 1


@pytest.mark.parametrize(("types", "told"), [(STOCK, "cgotel.types.db"), (OWN, "collectd's own file")])
def test_missing_types_are_told_once(started, types, told):
    plugin, daemon = started(node("Interval", 60.0), types=types)
    plugin.read()
    plugin.read()
    assert daemon.said("error").count("no TypesDB holds") == 1
    assert told in daemon.said("error")
    assert {value["type"] for value in daemon.values} <= set(types)


def test_a_sweep_that_does_not_end_is_told_once_and_followed_up(started, monkeypatch):
    gate = threading.Event()
    real = Sweeper.sweep

    def held(sweeper, instant):
        gate.wait()
        return real(sweeper, instant)

    monkeypatch.setattr(Sweeper, "sweep", held)
    plugin, daemon = started(node("Interval", 0.1))
    for _ in range(3):
        plugin.read()
    assert daemon.values == []
    assert daemon.said("warning").count("a sweep has not ended") == 1
    gate.set()
    eventually(lambda: plugin.read() or daemon.values, 20, "the values of the sweep that blocked")


def test_what_the_time_does_not_suffice_for_follows(started, monkeypatch):
    plugin, daemon = started(node("Interval", 60.0))
    slow = iter(range(10**6))
    real = plugin_module.now
    monkeypatch.setattr(plugin_module, "now", lambda: real()._replace(monotonic_ns=next(slow) * 60 * 10**9))
    plugin.read()
    first = len(daemon.values)
    assert "collectd takes longer than an interval" in daemon.said("warning")
    instances = {value["plugin_instance"] for value in daemon.values}
    plugin.read()
    assert len(daemon.values) > first
    assert len({value["time"] for value in daemon.values}) == 1
    assert {value["plugin_instance"] for value in daemon.values} > instances


def test_a_daemon_that_refuses_is_told_and_not_raised(started, monkeypatch):
    plugin, daemon = started(node("Interval", 60.0))
    monkeypatch.setattr(daemon, "Values", lambda **_: 1 / 0)
    plugin.read()
    assert "ZeroDivisionError" in daemon.said("error")


def test_an_oom_kill_is_a_notification(started, tree, tmp_path):
    config = tmp_path / "cgotel.toml"
    config.write_text(UNWATCHED)  # by this machine's kernel log, which knows nothing of the tree's kills
    plugin, daemon = started(node("Interval", 60.0), node("Config", str(config)))
    plugin.read()
    tree.change(CONTAINER, "memory.events.local", "oom_kill 1", "oom_kill 2")
    plugin.read()
    [told] = daemon.notifications
    assert (told["severity"], told["plugin_instance"]) == (1, CONTAINER_ID[:12])


def test_the_environment_of_opentelemetry_has_no_say(started, monkeypatch):
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "nonsense")
    _plugin, daemon = started()
    assert len(daemon.reads) == 1


def test_its_log_lines_are_the_daemons(started):
    plugin, daemon = started()
    logging.getLogger("cgotel.test").warning("two\nlines")
    plugin.shutdown()
    logging.getLogger("cgotel.test").warning("after")
    assert daemon.said("warning") == "cgotel: two\\nlines"
