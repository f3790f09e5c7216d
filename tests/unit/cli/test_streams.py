"""Commands whose standard streams are closed, full, claimed by the answer, or interrupted."""

import json
import os
import signal
import subprocess
import sys

import pytest
from tests.unit.cli.conftest import CGOTEL

COMMANDS = (
    ("snapshot",),
    ("snapshot", "--format", "json"),
    ("doctor",),
    ("doctor", "--format", "json"),
    ("plugins",),
    ("plugins", "--format", "json"),
    ("agent", "--once"),
    ("config", "check"),
    ("config", "show"),
    ("--help",),
    ("--version",),
)


@pytest.fixture
def here(tree):
    """The environment of the host's tree, without an endpoint."""
    return {key: value for key, value in tree.environment.items() if not key.startswith("OTEL_")}


@pytest.fixture
def chatty(here, tmp_path):
    """The environment of a host with a plugin that prints while it is imported, at work, and at the end."""
    folder = tmp_path / "site"
    info = folder / "chatty-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: chatty\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[cgotel]\nchatty = chatty\n")
    (folder / "chatty.py").write_text("""
import atexit, os
from cgotel import Collector, hookimpl

print("imported")
atexit.register(print, "ended")

class Chatty(Collector):
    name = "chatty"
    def collect(self, tick):
        os.write(1, b"at work\\n")
        yield from ()

@hookimpl
def cgotel_collectors():
    return [Chatty]
""")
    return {**here, "PYTHONPATH": str(folder)}


class TestClosed:
    @pytest.mark.parametrize("command", COMMANDS)
    @pytest.mark.parametrize("closed", [(0,), (1,), (0, 1, 2)])
    def test_a_command_ends_as_ever(self, here, command, closed):
        as_ever = subprocess.run([*CGOTEL, *command], env=here, capture_output=True, check=False)
        shell = " ".join(f"{number}>&-" for number in closed)
        done = subprocess.run(
            ["sh", "-c", f'exec "$@" {shell}', "sh", *CGOTEL, *command],
            env=here,
            capture_output=True,
            check=False,
        )
        assert done.returncode == as_ever.returncode
        assert done.stderr == (b"" if 2 in closed else as_ever.stderr)

    def test_what_is_opened_next_is_no_standard_stream(self):
        code = (
            "import os; from cgotel.cli.streams import reopen_missing; reopen_missing(); "
            "fd = os.open('/', os.O_RDONLY); os.close(2) if fd <= 2 else os._exit(fd)"
        )
        done = subprocess.run(
            ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", sys.executable, "-c", code], check=False
        )
        assert done.returncode == 3


class TestFull:
    @pytest.mark.parametrize("command", COMMANDS)
    @pytest.mark.parametrize("unbuffered", ["", "1"])
    def test_a_full_device_is_one_line_and_status_1(self, here, command, unbuffered):
        with open("/dev/full", "w", encoding="ascii") as full:
            done = subprocess.run(
                [*CGOTEL, *command],
                env={**here, "PYTHONUNBUFFERED": unbuffered},
                stdout=full,
                stderr=subprocess.PIPE,
                text=True,
                check=False,
            )
        assert done.returncode == 1
        [line] = done.stderr.splitlines()
        assert "No space left on device" in line

    @pytest.mark.parametrize("command", COMMANDS)
    def test_a_closed_pipe_is_quiet(self, here, command):
        read_end, write_end = os.pipe()
        os.close(read_end)
        done = subprocess.run(
            [*CGOTEL, *command], env=here, stdout=write_end, stderr=subprocess.PIPE, text=True, check=False
        )
        os.close(write_end)
        assert done.stderr == ""

    def test_a_full_standard_error_changes_no_status(self, here):
        with open("/dev/full", "w", encoding="ascii") as full:
            done = subprocess.run(
                [*CGOTEL, "--config", "/nowhere", "snapshot"], env=here, stderr=full, check=False
            )
        assert done.returncode == 2


class TestAPluginThatPrints:
    @pytest.mark.parametrize("command", ["snapshot", "doctor", "plugins"])
    def test_json_stays_json(self, cgotel, chatty, command):
        done = cgotel(command, "--format", "json", env=chatty)
        assert json.loads(done.stdout)["version" if command != "plugins" else "plugins"]
        assert {"imported", "ended"} <= set(done.stderr.splitlines())

    def test_prometheus_text_stays_that(self, cgotel, chatty):
        done = cgotel("snapshot", "--format", "prometheus", env=chatty)
        assert done.stdout.startswith("# HELP ")
        assert not {"imported", "at work", "ended"} & set(done.stdout.splitlines())
        assert {"imported", "at work", "ended"} <= set(done.stderr.splitlines())

    def test_standard_output_by_its_name_is_the_answers(self, cgotel, chatty):
        done = cgotel("snapshot", "--format", "json", "--output", "/dev/stdout", env=chatty)
        assert json.loads(done.stdout)["version"] == 1


def test_an_interrupt_is_quiet_and_status_130(chatty):
    with subprocess.Popen(
        [*CGOTEL, "snapshot", "--interval", "60"],
        env={**chatty, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert [process.stdout.readline() for _ in range(2)] == ["imported\n", "at work\n"]
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=60) == ("ended\n", "")
    assert process.returncode == 130
