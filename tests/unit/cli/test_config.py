"""`cgotel config`: what is in force, as TOML that says so, with its origins and without secrets."""

import tomllib

import pytest

FILE = """
[collectors.cgroup]
include = ["/a b/**", "/\\u0007\\u202e"]
[outputs.otlp]
timeout = 3
headers = {authorization = "Bearer hush"}
resource = {"a.b" = "x \\"y\\" \\u007f", n = 1, yes = true, share = 1e-9}
"""


@pytest.fixture
def here(tree):
    """The environment of the host's tree, and nothing else that has a say."""
    kept = {key: tree.environment[key] for key in ("HOST_PROC", "HOST_SYS")}
    prefixes = ("OTEL_", "HOST_", "CGOTEL_")
    return {key: value for key, value in tree.environment.items() if not key.startswith(prefixes)} | kept


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "cgotel.toml"
    path.write_text(FILE)
    return str(path)


def variables(done):
    found = [line for line in done.stdout.splitlines() if line.startswith("# from the environment: ")]
    return [line.removeprefix("# from the environment: ") for line in found]


def test_what_is_shown_is_toml_with_the_same_values(cgotel, here, config):
    done = cgotel("--config", config, "config", "show", env=here)
    assert (done.returncode, done.stderr) == (0, "")
    shown, given = tomllib.loads(done.stdout), tomllib.loads(FILE)
    assert shown["collectors"]["cgroup"]["include"] == given["collectors"]["cgroup"]["include"]
    assert shown["outputs"]["otlp"]["resource"] == given["outputs"]["otlp"]["resource"]
    assert shown["collectors"]["pressure"]["enabled"] is True
    assert all(character.isprintable() or character == "\n" for character in done.stdout)


def test_each_value_has_its_origin_and_no_secret_is_shown(cgotel, here, config):
    done = cgotel("--config", config, "config", "show", env=here)
    lines = done.stdout.splitlines()
    assert f"timeout = 3.0  # {config}:5" in lines
    assert f'headers = "***"  # {config}:6' in lines
    assert "rows = 20  # default" in lines
    assert "hush" not in done.stdout


def test_what_the_environment_says_is_in_force_too(cgotel, here):
    environment = {
        **here,
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:4318",
        "OTEL_RESOURCE_ATTRIBUTES": "a=\x1b[2J",
        "CGOTEL_PLUGINS": "none",
        "OTEL_SERVICE_NAME": "",
    }
    done = cgotel("config", "show", env=environment)
    assert tomllib.loads(done.stdout)["agent"]["interval"] == 10
    assert variables(done) == [
        "CGOTEL_PLUGINS=none",
        f"HOST_PROC={here['HOST_PROC']}",
        f"HOST_SYS={here['HOST_SYS']}",
        "OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318",
        r"OTEL_RESOURCE_ATTRIBUTES=a=\x1b[2J",
    ]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=hush"),
        ("OTEL_EXPORTER_OTLP_METRICS_HEADERS", "authorization=hush"),
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://me:hush@localhost:4318"),
    ],
)
def test_a_secret_of_the_environment_is_not_shown(cgotel, here, name, value):
    done = cgotel("config", "show", env={**here, name: value})
    assert f"{name}=***" in variables(done)
    assert "hush" not in done.stdout + done.stderr


def test_a_check_says_what_it_checked(cgotel, here, config):
    done = cgotel("--config", config, "config", "check", env=here)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{config}: ok\n", "")
