"""A configuration is right, or it is one line that says where it is wrong."""

import msgspec
import pytest

from cgotel import config
from cgotel.collectors.cgroup import CgroupConfig
from cgotel.config import ConfigError
from cgotel.contract import Settings

OUTPUTS = {"otlp": Settings, "console": Settings}


def checked(tmp_path, text, environ=None):
    path = tmp_path / "cgotel.toml"
    path.write_text(text)
    document = config.read(str(path))
    return config.check(document, {"cgroup": CgroupConfig}, OUTPUTS, environ or {})


def test_without_a_file_everything_is_default(monkeypatch, tmp_path):
    monkeypatch.setattr(config, "DEFAULT_PATH", str(tmp_path / "none.toml"))
    found = config.check(config.read(None), {"cgroup": CgroupConfig}, OUTPUTS, {})
    assert found.agent.interval == 10
    assert {origin for _, _, origin in found.origins()} == {"default"}


def test_the_default_file_is_read_where_it_exists(monkeypatch, tmp_path):
    path = tmp_path / "cgotel.toml"
    path.write_text("[agent]\ninterval = 3\n")
    monkeypatch.setattr(config, "DEFAULT_PATH", str(path))
    assert config.check(config.read(None), {}, OUTPUTS, {}).agent.interval == 3


def test_each_value_says_where_it_came_from(tmp_path):
    found = checked(tmp_path, "[agent]\nmax_series = 5\n\n[collectors.cgroup]\nmax_depth = 2\n")
    origins = {key: (value, origin) for key, value, origin in found.origins()}
    assert origins["agent.max_series"] == (5, f"{tmp_path}/cgotel.toml:2")
    assert origins["collectors.cgroup.max_depth"] == (2, f"{tmp_path}/cgotel.toml:5")
    assert origins["collectors.cgroup.enabled"] == (True, "default")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[agent]\nintervall = 1\n", "cgotel.toml:2: agent.intervall: unknown key; did you mean 'interval'?"),
        ("[agent]\ninterval = 'fast'\n", "cgotel.toml:2: agent.interval: expected `float`, got `str`"),
        ("[agent]\ninterval = 0\n", "cgotel.toml:2: agent.interval: expected `float` >= 0.1"),
        (
            "[agent]\noutputs = ['otel']\n",
            "cgotel.toml:2: agent.outputs: no output 'otel'; allowed: console, otlp",
        ),
        ("[agnet]\n", "cgotel.toml:1: agnet: unknown key; did you mean 'agent'?"),
        ("agent = 3\n", "cgotel.toml:1: agent: must be a table"),
        (
            "[collectors]\ncgruop = {}\n",
            "cgotel.toml:2: collectors.cgruop: unknown key; did you mean 'cgroup'?",
        ),
        (
            "[collectors.cgroup]\n\nmax_depth = -1\n",
            "cgotel.toml:3: collectors.cgroup.max_depth: expected `int` >= 0",
        ),
        (
            "[collectors.cgroup]\ninclude = [3]\n",
            "cgotel.toml:2: collectors.cgroup.include: expected `str`, got `int`",
        ),
        ("collectors.cgroup.depth = 1\n", "cgotel.toml:1: collectors.cgroup.depth: unknown key"),
        ("[agent\n", "cgotel.toml: not valid TOML"),
        ("a = " + "[" * 100_000, "cgotel.toml: cannot be meant: RecursionError"),
        ("a = " + "1" * 5_000, "cgotel.toml: cannot be meant: ValueError"),
        ("#" * (1 << 20) + "#", "cgotel.toml: larger than 1048576 characters"),
        ("[collectors.cgroup]\nslow_interval = inf\n", "slow_interval: expected `float` <= 86400"),
        ("[collectors.cgroup]\nslow_interval = nan\n", "slow_interval: expected `float`"),
        ("[agent]\ninterval = nan\n", "interval: expected `float`"),
        ("[collectors.cgroup]\ninclude = ['/a[b']\n", "'/a[b'"),
        ("[collectors.cgroup]\nexclude = ['system.slice']\n", "'system.slice' must begin with '/'"),
    ],
)
def test_a_fault_is_one_line_with_its_place(tmp_path, text, message):
    with pytest.raises(ConfigError) as fault:
        checked(tmp_path, text)
    assert message in str(fault.value)
    assert "\n" not in str(fault.value)


def test_the_table_of_a_plugin_that_did_not_load_is_no_fault(tmp_path):
    path = tmp_path / "cgotel.toml"
    path.write_text("[collectors.broken]\nkey = 1\n[agent]\ninterval = 4\n")
    found = config.check(config.read(str(path)), {"cgroup": CgroupConfig}, OUTPUTS, {}, complete=False)
    assert found.agent.interval == 4


def test_an_unreadable_file_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"nowhere.toml: cannot be read: No such file"):
        config.read(str(tmp_path / "nowhere.toml"))


def test_a_file_that_is_not_text_is_named(tmp_path):
    path = tmp_path / "cgotel.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="not UTF-8 at byte 0"):
        config.read(str(path))


def test_the_environment_sets_the_interval_unless_the_file_does(tmp_path):
    environ = {"OTEL_METRIC_EXPORT_INTERVAL": "2500"}
    assert checked(tmp_path, "", environ).agent.interval == 2.5
    assert checked(tmp_path, "[agent]\ninterval = 7\n", environ).agent.interval == 7
    origins = {key: origin for key, _, origin in checked(tmp_path, "", environ).origins()}
    assert origins["agent.interval"] == "OTEL_METRIC_EXPORT_INTERVAL"


@pytest.mark.parametrize("text", ["fast", "-1", "1e3", "99", "²²²²", "1" * 5_000])
def test_a_bad_interval_in_the_environment_is_named(tmp_path, text):
    with pytest.raises(ConfigError, match="OTEL_METRIC_EXPORT_INTERVAL"):
        checked(tmp_path, "", {"OTEL_METRIC_EXPORT_INTERVAL": text})


def test_every_key_of_a_table_has_a_default():
    for kind in (config.AgentSettings, config.PluginSettings, CgroupConfig):
        assert msgspec.convert({}, kind) is not None
