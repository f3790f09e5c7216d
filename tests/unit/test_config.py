"""A configuration is right, or it is one line that says where it is wrong."""

import msgspec
import pytest

from cgotel import config
from cgotel.collectors.cgroup import CgroupConfig
from cgotel.config import ConfigError
from cgotel.contract import Settings


class OtlpConfig(Settings, frozen=True):
    limit: float = 1.0
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    wordless: bool = False

    def __post_init__(self):
        if self.wordless:
            raise ValueError


OUTPUTS = {"otlp": OtlpConfig, "console": Settings}


def checked(tmp_path, text, environ=None):
    path = tmp_path / "cgotel.toml"
    path.write_text(text)
    document = config.read(str(path))
    return config.check(document, {"cgroup": CgroupConfig}, {}, OUTPUTS, environ or {})


def test_without_a_file_everything_is_default(monkeypatch, tmp_path):
    monkeypatch.setattr(config, "DEFAULT_PATH", str(tmp_path / "none.toml"))
    found = config.check(config.read(None), {"cgroup": CgroupConfig}, {}, OUTPUTS, {})
    assert found.agent.interval == 10
    assert {origin for _, _, origin in found.origins()} == {"default"}


def test_the_default_file_is_read_where_it_exists(monkeypatch, tmp_path):
    path = tmp_path / "cgotel.toml"
    path.write_text("[agent]\ninterval = 3\n")
    monkeypatch.setattr(config, "DEFAULT_PATH", str(path))
    assert config.check(config.read(None), {}, {}, OUTPUTS, {}).agent.interval == 3


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
        ("[agent]\ninterval = 'fast'\n", "cgotel.toml:2: agent.interval: expected a number, got text"),
        ("[agent]\ninterval = 0\n", "cgotel.toml:2: agent.interval: expected a number >= 0.1"),
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
            "cgotel.toml:3: collectors.cgroup.max_depth: expected a whole number >= 0",
        ),
        (
            "[collectors.cgroup]\ninclude = [3]\n",
            "cgotel.toml:2: collectors.cgroup.include: expected text, got a whole number",
        ),
        ("collectors.cgroup.depth = 1\n", "cgotel.toml:1: collectors.cgroup.depth: unknown key"),
        ("[agent\n", "cgotel.toml: not valid TOML"),
        ("a = " + "[" * 100_000, "cgotel.toml: cannot be meant: RecursionError"),
        ("a = " + "1" * 5_000, "cgotel.toml: cannot be meant: ValueError"),
        ("#" * (1 << 20) + "#", "cgotel.toml: larger than 1048576 characters"),
        (
            "[collectors.cgroup]\nslow_interval = inf\n",
            "cgotel.toml:2: collectors.cgroup.slow_interval: must be a finite number, not inf",
        ),
        (
            "[collectors.cgroup]\nslow_interval = nan\n",
            "cgotel.toml:2: collectors.cgroup.slow_interval: must be a finite number, not nan",
        ),
        ("[agent]\ninterval = nan\n", "cgotel.toml:2: agent.interval: must be a finite number, not nan"),
        (
            "[outputs.otlp]\nlimit = inf\n",
            "cgotel.toml:2: outputs.otlp.limit: must be a finite number, not inf",
        ),
        ("agent = {interval = 'fast'}\n", "cgotel.toml:1: agent.interval: expected a number, got text"),
        ("[agent]\noutputs = 'otlp'\n", "cgotel.toml:2: agent.outputs: expected an array, got text"),
        ("[collectors.cgroup]\nenabled = 1\n", "enabled: expected a boolean, got a whole number"),
        ("[outputs.otlp]\nlabels = 'a'\n", "labels: expected a table, got text"),
        ("# a\u2028b\n[agent]\ninterval = 0\n", "cgotel.toml:3: agent.interval: expected"),
        ("[agent]\n'interval' = 0\n", "cgotel.toml:2: agent.interval: expected"),
        ("agent . interval = 0\n", "cgotel.toml:1: agent.interval: expected"),
        ("[ agent ] # a\ninterval = 0\n", "cgotel.toml:2: agent.interval: expected"),
        (
            "[collectors.cgroup]\nenabled = true\n\nkinds = ['x']\n",
            "cgotel.toml:4: collectors.cgroup.kinds: no kind 'x'",
        ),
        (
            "[outputs.otlp]\nlimit = 3\nwordless = true\n",
            "cgotel.toml:3: outputs.otlp.wordless: cannot be meant",
        ),
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
    found = config.check(config.read(str(path)), {"cgroup": CgroupConfig}, {}, OUTPUTS, {}, complete=False)
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


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[agent]\ninterval = 7\n", ":2"),
        ("agent.interval = 7\n", ":1"),
        ("agent . interval = 7\n", ":1"),
        ("agent . 'interval' = 7\n", ":1"),
        ("agent = {interval = 7}\n", ""),
        ("agent = {max_series = 1, interval = 7}\n", ""),
        ('"agent" = {"\\u0069nterval" = 7}\n', ""),
    ],
)
def test_however_the_file_sets_the_interval_it_is_the_files(tmp_path, text, line):
    found = checked(tmp_path, text, {"OTEL_METRIC_EXPORT_INTERVAL": "2500"})
    origins = {key: (value, origin) for key, value, origin in found.origins()}
    assert origins["agent.interval"] == (7, f"{tmp_path}/cgotel.toml{line}")


def test_what_only_looks_like_a_key_sets_nothing(tmp_path):
    text = '[outputs.otlp.labels]\na = """\n[agent]\ninterval = 7\n"""\n'
    environ = {"OTEL_METRIC_EXPORT_INTERVAL": "2500"}
    assert checked(tmp_path, text, environ).agent.interval == 2.5


def test_a_long_word_in_a_text_does_not_hold_it_up(tmp_path):
    found = checked(tmp_path, f'[outputs.otlp.labels]\na = """\n{"x" * 60_000}\n"""\n')
    assert len(found.outputs["otlp"].labels["a"]) == 60_001


@pytest.mark.parametrize("text", ["fast", "-1", "1e3", "99", "²²²²", "1" * 5_000])
def test_a_bad_interval_in_the_environment_is_named(tmp_path, text):
    with pytest.raises(ConfigError, match="OTEL_METRIC_EXPORT_INTERVAL"):
        checked(tmp_path, "", {"OTEL_METRIC_EXPORT_INTERVAL": text})


def test_every_key_of_a_table_has_a_default():
    for kind in (config.AgentSettings, config.PluginSettings, CgroupConfig):
        assert msgspec.convert({}, kind) is not None
