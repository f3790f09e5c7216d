"""The options: each typed and checked, each fault named, none raised."""

import pytest
from tests.unit.collectd.fake_collectd import node

from cgotel.assemble import assemble
from cgotel.collectd.options import OPTIONS, parse

VALUES = {
    "number": (2.5,),
    "whole": (4.0,),
    "boolean": (True,),
    "string": ("x",),
    "strings": ("/a", "/b"),
}
WRONG = {
    "number": ["x", True, None],
    "whole": ["x", False, 1.5],
    "boolean": [1.0, "true"],
    "string": [1.0, True],
    "strings": [1.0, True],
}


def faults(*nodes):
    return parse(nodes)[1]


@pytest.mark.parametrize("option", OPTIONS, ids=lambda o: o.name)
def test_each_option_takes_a_value_of_its_type_in_any_case_of_letters(option):
    values = ("container",) if option.name == "Kinds" else VALUES[option.kind]
    options, found = parse([node(option.name.upper(), *values)])
    assert found == []
    for key in option.keys:
        table, _, name = key.partition(".")
        assert options.settings[table][name] == (values if option.kind == "strings" else values[0])


@pytest.mark.parametrize(
    ("option", "value"),
    [(o, v) for o in OPTIONS for v in WRONG[o.kind]],
    ids=lambda x: getattr(x, "name", str(x)),
)
def test_a_wrong_type_is_a_fault_that_names_the_option(option, value):
    [fault] = faults(node(option.name, value))
    assert fault.startswith(f"option {option.name}: must be ")


@pytest.mark.parametrize("option", OPTIONS, ids=lambda o: o.name)
@pytest.mark.parametrize("values", [(), (1.0, "x")])
def test_too_few_or_mixed_values_are_a_fault(option, values):
    [fault] = faults(node(option.name, *values))
    assert fault.startswith(f"option {option.name}: ")


def test_all_faults_are_told():
    found = faults(node("Interval", "x"), node("Nonesuch"), node("MaxDepth", -1.0), node("Host", True))
    assert [fault.split()[1] for fault in found] == ["Interval:", "Nonesuch:", "MaxDepth:"]


def test_lines_of_strings_add_up():
    options, found = parse([node("Exclude", "/a"), node("exclude", "/b", "/c")])
    assert found == []
    assert options.settings["cgroup"]["exclude"] == ("/a", "/b", "/c")


def test_options_go_before_the_file(tmp_path):
    file = tmp_path / "cgotel.toml"
    file.write_text("[agent]\nmax_series = 7\n[collectors.cgroup]\nmax_depth = 1\nslow_interval = 30\n")
    options, _ = parse([node("MaxDepth", 3.0), node("Host", False), node("Interval", 0.5)])
    configuration = options.over(assemble(str(file), {}).configuration)
    assert configuration.collectors["cgroup"].max_depth == 3
    assert configuration.collectors["cgroup"].slow_interval == 30
    assert configuration.collectors["host"].enabled is False
    assert configuration.collectors["pressure"].enabled is False
    assert configuration.agent.max_series == 7
    assert options.interval == 0.5


def test_without_options_collectd_decides_on_the_interval():
    options, found = parse([])
    assert (options.interval, options.config, found) == (None, None, [])
    assert options.notifications
    assert options.meta
