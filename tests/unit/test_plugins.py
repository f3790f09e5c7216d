"""Plugins of every kind of brokenness, as installed distributions: none stops the others."""

import sys

import pytest

from cgotel import plugins

GOOD = """
from cgotel import Collector, hookimpl

class Good(Collector):
    name = "good"

@hookimpl
def cgotel_collectors():
    return [Good]
"""

BROKEN = {
    "cannot be imported": ("import nowhere_to_be_found", "ModuleNotFoundError"),
    "raises at import": ("1 / 0", "ZeroDivisionError"),
    "raises in its hook": (
        "from cgotel import hookimpl\n@hookimpl\ndef cgotel_collectors():\n    raise OSError('no')",
        "OSError: no",
    ),
    "returns nothing": (
        "from cgotel import hookimpl\n@hookimpl\ndef cgotel_collectors():\n    pass",
        "TypeError",
    ),
    "returns what is no collector": (
        "from cgotel import hookimpl\n@hookimpl\ndef cgotel_collectors():\n    return [int]",
        "must return subclasses of Collector",
    ),
    "returns an instance": (
        GOOD.replace("[Good]", "[Good(None, None)]"),
        "must return subclasses of Collector",
    ),
    "has a Config of its own sort": (
        GOOD.replace('name = "good"', 'name = "good"; Config = int'),
        "its Config must be a subclass of CollectorSettings",
    ),
    "leaves while it is imported": ("raise SystemExit(3)", "SystemExit: 3"),
    "has no name": (GOOD.replace('name = "good"', "pass"), "has no name"),
    "takes a name that is taken": (GOOD.replace('"good"', '"cgroup"'), "is offered twice"),
    "uses an unknown hook": (
        "from cgotel import hookimpl\n@hookimpl\ndef cgotel_dreams():\n    return []",
        "it needs a newer cgotel",
    ),
    "asks for arguments": (
        "from cgotel import hookimpl\n@hookimpl\ndef cgotel_collectors(config):\n    return []",
        "config",
    ),
}

RULE = """
from cgotel import hookimpl
from cgotel.restarts.rule import Rule

@hookimpl
def cgotel_rules():
    return [Rule("crash", "mine", 10, ())]
"""
BROKEN |= {
    "has a rule without a place": (RULE.replace("10", "'first'"), "its rank must be a number"),
    "has a rule for no cause": (RULE.replace('"crash"', '"bad luck"'), "no cause 'bad luck'"),
    "offers what is no rule": (RULE.replace('Rule("crash", "mine", 10, ())', "print"), "must return rules"),
}


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Install a one-module distribution under an entry point of the group cgotel."""
    monkeypatch.syspath_prepend(str(tmp_path))
    installed = []

    def installing(name, source):
        module = f"cgotel_test_{name}"
        (tmp_path / f"{module}.py").write_text(source)
        info = tmp_path / f"{module}-1.5.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.5\n")
        (info / "entry_points.txt").write_text(f"[cgotel]\n{name} = {module}\n")
        installed.append(module)

    yield installing
    for module in installed:
        sys.modules.pop(module, None)


def named(registry, name):
    return next(plugin for plugin in registry.plugins if plugin.name == name)


@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_plugin_is_named_with_its_fault_and_stops_no_other(install, how):
    source, fault = BROKEN[how]
    install("broken", source)
    install("zgood", GOOD)
    registry = plugins.load()
    assert fault in named(registry, "broken").fault
    assert "good" in registry.collectors
    assert "cgroup" in registry.collectors
    assert registry.collectors["cgroup"].__module__.startswith("cgotel.")


@pytest.mark.parametrize("content", [b"[cgotel]\nno equals sign\n", b"\xff\xfe\x00"])
def test_a_list_of_entry_points_that_cannot_be_read_hides_no_other(install, tmp_path, content):
    install("torn", GOOD)
    (tmp_path / "cgotel_test_torn-1.5.dist-info/entry_points.txt").write_bytes(content)
    install("zgood", GOOD)
    registry = plugins.load()
    assert "good" in registry.collectors
    assert named(registry, "zgood").fault == ""
    assert named(registry, "cgotel_test_torn").origin == "its entry_points.txt"


def test_a_plugin_says_where_it_comes_from_and_what_it_offers(install):
    install("zgood", GOOD)
    plugin = named(plugins.load(), "zgood")
    assert (plugin.origin, plugin.offers, plugin.fault) == ("cgotel_test_zgood 1.5", ["collector good"], "")


def test_a_name_to_disable_that_no_plugin_has_is_told_with_those_that_they_have(install):
    install("good", GOOD)
    [told] = plugins.load(disabled=["good", "gut", "cgroup"]).faults()
    assert told.startswith("[plugins] disabled: no plugin is called cgroup, gut; known: ")
    assert {"collectors.cgroup", "good"} <= set(told.rpartition("known: ")[2].split(", "))


def test_in_a_rescue_nobody_asks_who_is_unknown(install):
    assert list(plugins.load(disabled=["good"], environ={plugins.RESCUE: "none"}).faults()) == []


def test_a_disabled_plugin_is_not_even_imported(install):
    install("broken", "1 / 0")
    registry = plugins.load(disabled=["broken"])
    assert named(registry, "broken").fault == "disabled in the configuration"
    assert "cgotel_test_broken" not in sys.modules


def test_the_rescue_variable_loads_built_ins_only(install):
    install("broken", "1 / 0")
    registry = plugins.load(environ={"CGOTEL_PLUGINS": "none"})
    assert {plugin.origin for plugin in registry.plugins} == {"built-in"}
    assert "cgroup" in registry.collectors


def test_every_built_in_loads():
    registry = plugins.load(environ={"CGOTEL_PLUGINS": "none"})
    assert [plugin.fault for plugin in registry.plugins if plugin.fault] == []
    assert {"cgroup", "host", "pressure"} <= registry.collectors.keys()
    assert {"console", "otlp"} <= registry.outputs.keys()
