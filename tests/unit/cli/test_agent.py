"""`cgotel agent` without an endpoint: the live summary, in a pipe and on a terminal."""

import fcntl
import os
import pty
import signal
import struct
import subprocess
import termios

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
