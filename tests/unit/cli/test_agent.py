"""`cgotel agent` without an endpoint: the live summary, in a pipe and on a terminal."""

import fcntl
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
from contextlib import suppress

import pytest
from tests.unit.cli.conftest import CGOTEL
from tests.unit.cli.host_tree import SERVICE, pressure


@pytest.fixture
def no_endpoint(tree):
    return {key: value for key, value in tree.environment.items() if not key.startswith("OTEL_")}


def test_one_sweep_is_one_block(cgotel, no_endpoint):
    done = cgotel("agent", "--once", env=no_endpoint)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("cgotel ") == 2  # the title, and the last line's advice
    assert "web.service" in done.stdout


def test_the_second_block_is_of_the_time_between(no_endpoint, tree):
    with subprocess.Popen(
        [*CGOTEL, "agent", "--interval", "0.1"], env=no_endpoint, stdout=subprocess.PIPE, text=True
    ) as agent:
        first = block(agent.stdout)
        tree.cgroup(SERVICE, {"cpu.pressure": pressure(60_000_000)})
        rows = []
        while not any(row.startswith("web.service") and row.split()[2] == "100" for row in rows):
            rows = block(agent.stdout)
        agent.send_signal(signal.SIGINT)
        agent.stdout.read()
    assert "totals" in first[0]
    assert "over " in rows[0]
    assert agent.returncode == 0


def block(stream):
    """The lines up to the one that ends a frame."""
    lines = []
    while not lines or not lines[-1].startswith("not measured"):
        lines.append(stream.readline())
        assert lines[-1], "the agent ended"
    return [line for line in lines if line.strip()]


def test_it_ends_quietly_when_nobody_reads_any_more(no_endpoint):
    with subprocess.Popen(
        [*CGOTEL, "agent", "--interval", "0.1"],
        env=no_endpoint,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as agent:
        agent.stdout.readline()
        agent.stdout.close()
        assert agent.wait(timeout=60) == 0
        assert agent.stderr.read() == ""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_terminal_is_given_back(no_endpoint, number):
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
    with subprocess.Popen(
        [*CGOTEL, "agent", "--interval", "0.1"],
        env={**no_endpoint, "TERM": "xterm"},
        stdin=slave,
        stdout=slave,
        stderr=slave,
    ) as agent:
        os.close(slave)
        shown = until(master, b"over ")
        agent.send_signal(number)
        shown += until(master, b"")
    os.close(master)
    assert agent.returncode == 0
    entered, _, left = shown.decode().partition("\x1b[?25h\x1b[?1049l")
    assert "\x1b[?1049h" in entered
    assert "web.service" in left
    assert "\x1b[?1049h" not in left


def until(master, wanted):
    """What arrives on a terminal until these bytes came, or (without any) its end."""
    received = b""
    while not wanted or wanted not in received:
        try:
            received += os.read(master, 65536)
        except OSError:  # EIO: nobody is left on the other side
            assert not wanted, f"the agent ended: {received!r}"
            break
    return received


class TestTheEnd:
    """Told by signals, at any moment, however often; and it comes though somebody hangs."""

    PLUGIN = """
import sys, time
from cgotel import Collector, hookimpl

class Slow(Collector):
    name = "slow"
    def collect(self, tick):
        print("collecting", file=sys.stderr, flush=True)
        {wait}
        yield from ()

@hookimpl
def cgotel_collectors():
    return [Slow]
"""

    @pytest.fixture
    def started(self, tmp_path, monkeypatch):
        """An agent with a slow collector, once it is collecting; killed in the end."""
        processes = []

        def start(wait="pass", patience_s=10):
            (tmp_path / "slow_plugin.py").write_text(self.PLUGIN.format(wait=wait))
            info = tmp_path / "slow-1.dist-info"
            info.mkdir()
            (info / "METADATA").write_text("Metadata-Version: 2.1\nName: slow\nVersion: 1\n")
            (info / "entry_points.txt").write_text("[cgotel]\nslow = slow_plugin\n")
            code = (
                f"from cgotel.cli import ending, main; ending.PATIENCE_S = {patience_s}; "
                "main(['agent', '--interval', '0.1'])"
            )
            process = subprocess.Popen(
                [sys.executable, "-c", code],
                env={**os.environ, "PYTHONPATH": str(tmp_path)},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
            )
            processes.append(process)
            for line in process.stderr:
                if line == "collecting\n":
                    return process
            raise AssertionError("it never collected")

        yield start
        for process in processes:
            process.kill()
            process.communicate()

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
    def test_one_signal_is_enough(self, started, number):
        process = started()
        process.send_signal(number)
        process.communicate(timeout=20)
        assert process.returncode == 0

    def test_two_hundred_are_no_more_than_one(self, started):
        process = started()
        for _ in range(200):
            process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)
        assert process.returncode == 0

    @pytest.mark.parametrize("wait", ["time.sleep(1000)", "exec('while True: pass')"])
    def test_a_collector_that_hangs_is_named_and_left(self, started, wait):
        process = started(wait, patience_s=0.2)
        process.terminate()
        _, said = process.communicate(timeout=20)
        assert process.returncode == 1
        assert said.splitlines()[-1] == "cgotel: collector slow does not return: ended without it"

    def test_a_second_interrupt_ends_it_at_once(self, started):
        process = started("time.sleep(1000)")
        for _ in range(50):  # two that come at once may be one to the kernel
            process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.1)
                break
        assert process.returncode == 130
