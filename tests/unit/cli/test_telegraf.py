"""`cgotel telegraf` as Telegraf's execd runs it: asked in every way, ended in every way, ill-treated."""

import fcntl
import os
import select
import signal
import subprocess

import pytest
from tests.unit.cli.conftest import CGOTEL
from tests.unit.cli.host_tree import SERVICE
from tests.unit.outputs.parsed_lines import parsed

LIMIT_S = 60

PRINTS = """
import os, sys, warnings
from cgotel import Collector, hookimpl

class Prints(Collector):
    name = "prints"

    def collect(self, tick):
        print("printed\\nby a plugin", end="")
        print(" without care")
        print("to standard error", file=sys.stderr)
        os.write(1, b"past Python\\n")
        os.system("echo by a child")
        warnings.warn("be careful")
        sys.__stdout__.write("past the wrapper\\n")
        sys.__stdout__.flush()
        return ()

@hookimpl
def cgotel_collectors():
    return [Prints]
"""

TALKS = """
import logging
from cgotel import Collector, hookimpl

class Talks(Collector):
    name = "talks"

    def collect(self, tick):
        for number in range(500):
            logging.getLogger("talks").warning("%d " + "x" * 10_000, number)
        return ()

@hookimpl
def cgotel_collectors():
    return [Talks]
"""

HANGS = """
import time
from cgotel import Collector, hookimpl

class Hangs(Collector):
    name = "hangs"

    def collect(self, tick):
        print("hanging")
        while True:
            time.sleep(1)

@hookimpl
def cgotel_collectors():
    return [Hangs]
"""


class Child:
    """The command with both its ends in hand."""

    def __init__(self, command, environment, **pipes):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **pipes}
        self.process = subprocess.Popen(command, env=environment, bufsize=0, **pipes)
        self._received = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(LIMIT_S)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()

    def ready(self):
        """Wait until it has said what it waits for: its handlers are in place from then on."""
        line = self.process.stderr.readline()
        assert line.startswith(b"I! cgotel "), line
        return line.decode()

    def ask(self, text=b"\n"):
        self.process.stdin.write(text)
        self.process.stdin.flush()

    def batch(self):
        """The lines up to the end of a batch, which is the line of sources."""
        lines = []
        while not lines or not lines[-1].startswith("cgotel_source "):
            lines.append(self._line())
        return parsed("".join(lines))

    def silent(self):
        """Whether there is nothing more to read just now."""
        return not self._received and not select.select([self.process.stdout], [], [], 0)[0]

    def close_input(self):
        """The end of standard input."""
        self.process.stdin.close()
        self.process.stdin = None

    def ends(self):
        """Its exit status, and what it still had to say on both ends."""
        output, errors = self.process.communicate(timeout=LIMIT_S)
        return self.process.returncode, (self._received + output).decode(), errors.decode()

    def _line(self):
        while b"\n" not in self._received:
            ready, _, _ = select.select([self.process.stdout], [], [], LIMIT_S)
            assert ready, "no batch came"
            more = os.read(self.process.stdout.fileno(), 65536)
            assert more, "it ended"
            self._received += more
        line, self._received = self._received.split(b"\n", 1)
        return f"{line.decode()}\n"


@pytest.fixture
def child(tree):
    """Starts `cgotel telegraf` on that host; it is gone when the test ends."""
    started = []

    def start(*arguments, before=(), environment=None, **pipes):
        command = [*CGOTEL, *before, "telegraf", *arguments]
        started.append(Child(command, environment or tree.environment, **pipes))
        return started[-1]

    yield start
    for one in started:
        one.__exit__()


@pytest.fixture
def plugin(tree, tmp_path):
    """The environment of a host where a plugin is installed."""

    def install(source):
        info = tmp_path / "site/cgotel_rude-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: cgotel-rude\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text("[cgotel]\nrude = cgotel_rude\n")
        (tmp_path / "site/cgotel_rude.py").write_text(source)
        return {**tree.environment, "PYTHONPATH": str(tmp_path / "site")}

    return install


def web(lines):
    [line] = [line for line in lines if line.tags.get("path") == SERVICE]
    return line


def test_each_line_on_standard_input_asks_for_a_batch(child, tree):
    running = child()
    times = []
    for number in range(3):
        tree.cgroup(SERVICE, {"memory.current": f"{number}\n"})
        running.ask()
        line = web(running.batch())
        assert line.fields["memory.current"] == number
        times.append(line.time_ns)
    assert times == sorted(set(times))
    running.close_input()
    assert running.ends()[:2] == (0, "")


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2])
def test_each_signal_asks_for_a_batch(child, number):
    running = child()
    running.ready()
    for _ in range(2):
        running.process.send_signal(number)
        assert web(running.batch()).measurement == "cgotel_cgroup"
    running.process.terminate()
    assert running.ends() == (0, "", "")


def test_a_signal_that_comes_before_all_else_is_answered(tree):
    code = (
        "import os, signal, sys\n"
        "sys.argv = ['cgotel', 'telegraf']\n"
        "from cgotel import cli\n"
        "os.kill(os.getpid(), signal.SIGHUP); os.kill(os.getpid(), signal.SIGUSR1)\n"
        "cli.main()\n"
    )
    with Child([CGOTEL[0], "-c", code], tree.environment) as running:
        assert web(running.batch())
        running.process.terminate()
        assert running.ends()[:2] == (0, "")


def test_an_interval_of_its_own_needs_no_asking(child):
    running = child("--interval", "0.1")
    assert "every 0.1 s" in running.ready()
    times = [web(running.batch()).time_ns for _ in range(3)]
    assert times == sorted(set(times))
    running.ask()
    assert web(running.batch())
    running.close_input()
    status, output, _ = running.ends()
    assert status == 0
    parsed(output)


def test_without_being_asked_it_says_nothing(child):
    running = child()
    assert "a batch for each line" in running.ready()
    assert running.silent()
    running.process.terminate()
    assert running.ends() == (0, "", "")


def test_requests_during_a_sweep_are_one(child):
    running = child()
    running.ask(b"\n" * 1000)
    running.batch()
    running.close_input()
    assert running.ends()[:2] == (0, "")


def test_a_last_request_is_answered_before_the_end(child):
    running = child()
    output, _ = running.process.communicate(b"\n", timeout=LIMIT_S)
    assert web(parsed(output.decode()))
    assert running.process.returncode == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_by_signal(child, number):
    running = child()
    running.ready()
    running.process.send_signal(number)
    assert running.ends() == (0, "", "")


def test_it_ends_though_a_collector_never_returns(child, plugin):
    running = child(environment=plugin(HANGS))
    running.ready()
    running.ask()
    assert running.process.stderr.readline() == b"I! hanging\n"
    running.process.terminate()
    assert running.ends()[0] == -signal.SIGALRM


def test_one_batch_by_hand(cgotel):
    done = cgotel("telegraf", "--once", stdin=subprocess.DEVNULL)
    assert done.returncode == 0
    assert web(parsed(done.stdout)).tags["name"] == "web.service"
    assert done.stderr.startswith("I! cgotel ")


def test_without_any_standard_input_it_ends_at_once(child):
    running = child(stdin=subprocess.DEVNULL)
    assert running.ends()[:2] == (0, "")


def test_it_ends_when_nobody_reads_any_more(child):
    running = child("--interval", "0.1")
    running.batch()
    running.process.stdout.close()
    assert running.process.wait(LIMIT_S) == 0


def test_whatever_is_printed_standard_output_is_line_protocol(child, plugin):
    running = child(environment=plugin(PRINTS))
    running.ask()
    lines = running.batch()
    running.close_input()
    status, output, errors = running.ends()
    assert (status, output) == (0, "")
    assert web(lines)
    told = errors.splitlines()
    assert {"I! printed", "I! by a plugin without care", "E! to standard error"} <= set(told)
    assert {"past Python", "by a child", "past the wrapper"} <= set(told)
    assert any(line.startswith("W! ") and "be careful" in line for line in told)


def test_log_lines_are_short_and_a_full_standard_error_holds_nothing(child, plugin):
    running = child(environment=plugin(TALKS))
    for _ in range(3):
        running.ask()
        assert web(running.batch())
    running.close_input()
    status, _, errors = running.ends()
    assert status == 0
    lines = errors.splitlines()
    assert all(line[:3] in ("I! ", "W! ") and len(line) < 4096 for line in lines)
    assert 1 < len(lines) < 1500


def test_a_reader_that_stops_reading_costs_whole_batches(child, tree, tmp_path):
    config = tmp_path / "cgotel.toml"
    config.write_text("[restarts]\nenabled = false\n[outputs.influx]\nwrite_timeout = 0.01\n")
    running = child("--interval", "0.1", before=("--config", str(config)))
    fcntl.fcntl(running.process.stdout, fcntl.F_SETPIPE_SZ, 4096)
    running.ready()
    told = running.process.stderr.readline().decode()
    assert told == "W! a batch is dropped: nobody took it within 0.01 s\n"
    first = web(running.batch())
    later = web(running.batch())
    agent = {}
    while not agent.get("cgotel.influx.dropped_batches"):
        lines = running.batch()
        agent = {
            key: value
            for line in lines
            if line.measurement == "cgotel_agent"
            for key, value in line.fields.items()
        }
    assert first.time_ns < later.time_ns
    running.process.terminate()
    status, output, _ = running.ends()
    assert status == 0
    parsed(output)


def test_it_ends_though_nobody_reads(child, tmp_path):
    running = child("--interval", "0.1")
    fcntl.fcntl(running.process.stdout, fcntl.F_SETPIPE_SZ, 4096)
    running.ready()
    assert running.process.stderr.readline().startswith(b"W! a batch is dropped")
    running.process.terminate()
    assert running.process.wait(LIMIT_S) == 0


def test_a_name_with_anything_in_it_is_one_line(child, tree):
    hostile = '/system.slice/a"b\\c\nd{e}, =日\\'
    tree.cgroup(hostile)
    running = child()
    running.ask()
    paths = [line.tags.get("path") for line in running.batch()]
    assert '/system.slice/a"b\\c\\nd{e}, =日\\x5c' in paths


def test_a_setting_that_cannot_be_meant_is_one_line_with_its_level(child, tmp_path):
    config = tmp_path / "cgotel.toml"
    config.write_text("[outputs.influx]\nwrite_timeout = 0\n")
    status, output, errors = child(before=("--config", str(config))).ends()
    assert (status, output) == (2, "")
    [line] = errors.splitlines()
    assert line.startswith(f"E! cgotel: {config}:2: outputs.influx.write_timeout: ")


def test_a_plugin_that_cannot_be_loaded_is_one_line_with_its_level(child, plugin):
    running = child("--once", environment=plugin("raise RuntimeError('two\\nlines')"))
    status, output, errors = running.ends()
    assert status == 0
    assert web(parsed(output))
    assert "E! cgotel: plugin rude (cgotel-rude 1.0): RuntimeError: two\\nlines" in errors.splitlines()


def test_it_runs_no_thread_that_could_outlive_its_end(child):
    running = child()
    running.ask()
    running.batch()
    folder = f"/proc/{running.process.pid}/task"
    assert len(os.listdir(folder)) == 1


def test_its_lines_are_an_output_of_the_agent_too(cgotel, tmp_path):
    config = tmp_path / "cgotel.toml"
    config.write_text('[agent]\noutputs = ["influx"]\n')
    done = cgotel("--config", str(config), "agent", "--once")
    assert (done.returncode, done.stderr) == (0, "")
    assert web(parsed(done.stdout))
