"""The live summary on a real terminal (a pty), in a pipe, and where nobody reads any more."""

import fcntl
import io
import logging
import os
import pty
import struct
import sys
import termios
import threading

import pytest
from tests.unit.outputs.sweeps import NOON_NS, cgroup, reading, sweep

from cgotel.contract import OutputEnded, SourceStatus, State
from cgotel.model import Event, Severity
from cgotel.outputs.console import ConsoleConfig, ConsoleOutput, cgotel_outputs

WEB = cgroup("/system.slice/web.service")
ENTER, LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
HOME, CLEAR_BELOW = "\x1b[H", "\x1b[J"


def event(body="killed 1 process"):
    return Event("cgotel.oom.kill", NOON_NS, NOON_NS, Severity.ERROR, WEB, body, "uid")


def swept(second, *paths, stalled_s=0.0):
    numbers = {"cpu.pressure.some.total": int(stalled_s * 1e6), "cgroup.procs.count": 1}
    return sweep(
        *(reading(cgroup(path), numbers) for path in paths or ["/system.slice/web.service"]), at_s=second
    )


class Terminal:
    """A pty of a given size; everything written to it is collected."""

    def __init__(self, width, height):
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
        attributes = termios.tcgetattr(slave)
        attributes[1] &= ~termios.OPOST  # what is written is what arrives
        termios.tcsetattr(slave, termios.TCSANOW, attributes)
        self.stream = open(slave, "w", encoding="utf-8", newline="")  # noqa: SIM115
        self._received = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self):
        while True:
            try:
                self._received.append(os.read(self._master, 65536))
            except OSError:  # EIO: the other end was closed
                return

    def received(self):
        """Everything, once the writer is done."""
        self.stream.close()
        self._reader.join()
        os.close(self._master)
        return b"".join(self._received).decode()


@pytest.fixture(autouse=True)
def colourful(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)


def frames_of(text):
    """What was shown between one redraw and the next."""
    return [frame.partition(CLEAR_BELOW)[0].split("\r\n") for frame in text.split(HOME)[1:]]


def test_a_terminal_is_redrawn_in_place_and_given_back():
    terminal = Terminal(100, 30)
    console = ConsoleOutput(ConsoleConfig(), terminal.stream)
    console.write(swept(0))
    console.write(swept(2, stalled_s=1.5))
    console.close()
    console.close()
    text = terminal.received()
    assert text.startswith(ENTER + HOME)
    assert text.count(ENTER) == text.count(LEAVE) == 1
    first, second = frames_of(text.partition(LEAVE)[0])
    assert "totals" in first[0]
    assert "over 2.0s" in second[0]
    assert all(line.endswith("\x1b[K") for line in second[:-1])
    left = text.partition(LEAVE)[2]
    assert "over 2.0s" in left  # what was seen last stays
    assert "web.service" in left


def test_on_a_terminal_much_pressure_is_coloured():
    terminal = Terminal(100, 30)
    console = ConsoleOutput(ConsoleConfig(), terminal.stream)
    console.write(swept(0))
    console.write(swept(2, stalled_s=1.5))
    assert "\x1b[1;31m   75\x1b[0m" in terminal.received()


def test_with_no_color_nothing_is_coloured(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    terminal = Terminal(100, 30)
    console = ConsoleOutput(ConsoleConfig(), terminal.stream)
    console.write(swept(0))
    console.write(swept(2, stalled_s=1.5))
    console.close()
    assert "m" not in {part[1:].lstrip("0123456789;?")[:1] for part in terminal.received().split("\x1b")[1:]}


def test_a_frame_has_no_more_lines_than_the_terminal():
    terminal = Terminal(80, 12)
    console = ConsoleOutput(ConsoleConfig(rows=40), terminal.stream)
    console.write(swept(0, *(f"/a{n}.service" for n in range(40))))
    console.emit(event())
    for frame in frames_of(terminal.received()):
        assert len(frame) <= 12
        assert "a0.service" in frame[6]


def test_a_terminal_that_does_not_know_its_size_is_taken_for_a_common_one():
    terminal = Terminal(0, 0)
    ConsoleOutput(ConsoleConfig(), terminal.stream).write(swept(0))
    [frame] = frames_of(terminal.received())
    assert "web.service" in frame[-1]


def test_a_terminal_of_one_line_shows_one():
    terminal = Terminal(20, 1)
    ConsoleOutput(ConsoleConfig(), terminal.stream).write(swept(0))
    [frame] = frames_of(terminal.received())
    assert len(frame) == 1


def test_events_stay_below_the_table_and_survive_it():
    terminal = Terminal(100, 30)
    console = ConsoleOutput(ConsoleConfig(lines=2), terminal.stream)
    console.write(swept(0))
    for body in ("one", "two", "three"):
        console.emit(event(body))
    console.close()
    shown, _, left = terminal.received().partition(LEAVE)
    last = "\n".join(frames_of(shown)[-1])
    assert "web.service: two" in last
    assert "web.service: three" in last
    assert "web.service: one" not in last
    assert "web.service: three" in left


def test_log_lines_do_not_fall_into_the_picture(monkeypatch):
    terminal = Terminal(100, 30)
    stderr = io.StringIO()
    stderr.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", stderr)
    handler = logging.StreamHandler()
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        console = ConsoleOutput(ConsoleConfig(), terminal.stream)
        console.write(swept(0))
        root.warning("a sweep took long")
        console.write(swept(2))
        console.close()
        root.warning("afterwards")
    finally:
        root.removeHandler(handler)
    shown = terminal.received().partition(LEAVE)[0]
    assert "a sweep took long" in "\n".join(frames_of(shown)[-1])
    assert stderr.getvalue() == "afterwards\n"


def test_a_pipe_gets_plain_blocks_one_after_another():
    stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    console = ConsoleOutput(ConsoleConfig(), stream)
    console.write(swept(0))
    console.emit(event())
    console.write(swept(2, stalled_s=1.5))
    console.close()
    text = stream.buffer.getvalue().decode()
    assert "\x1b" not in text
    assert text.count("host stalled") == 2
    assert "ERROR cgotel.oom.kill web.service: killed 1 process\n" in text


def test_a_dumb_terminal_is_treated_as_a_pipe(monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    terminal = Terminal(80, 24)
    ConsoleOutput(ConsoleConfig(), terminal.stream).write(swept(0))
    assert "\x1b" not in terminal.received()


def test_rows_are_bounded():
    stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    ConsoleOutput(ConsoleConfig(rows=3), stream).write(swept(0, *(f"/a{n}.service" for n in range(9))))
    text = stream.buffer.getvalue().decode()
    assert text.count(".service") == 3
    assert "3 of 9 cgroups" in text


def test_an_encoding_without_the_signs_gets_stand_ins():
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    ConsoleOutput(ConsoleConfig(), stream).write(swept(0, "/日本.service"))
    assert rb"\u65e5\u672c.service" in stream.buffer.getvalue()


def test_it_ends_when_nobody_reads():
    read_end, write_end = os.pipe()
    os.close(read_end)
    with open(write_end, "w", encoding="utf-8") as stream, pytest.raises(OutputEnded):
        ConsoleOutput(ConsoleConfig(), stream).write(swept(0))


def test_what_is_lost_is_said_with_the_next_frame():
    stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    console = ConsoleOutput(ConsoleConfig(), stream)
    console.sources([SourceStatus("irq.pressure", State.ABSENT, "needs Linux 6.1")])
    console.write(swept(0))
    assert (
        b"not measured: irq.pressure (needs Linux 6.1); cgotel doctor says all\n" in stream.buffer.getvalue()
    )


def test_it_is_offered_as_a_plugin():
    assert cgotel_outputs() == [ConsoleOutput]
