"""A reader that stops reading costs whole batches, never half a line and never the writer's time."""

import fcntl
import os
import socket
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cgotel.contract import OutputEnded
from cgotel.outputs.pipe import Pipe, unblocked

LINE = b"x" * 99 + b"\n"


class Reader:
    """The other end of a pipe of so many bytes."""

    def __init__(self, size=4096):
        self.end, descriptor = os.pipe2(os.O_NONBLOCK)
        self.size = fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, size)
        os.set_blocking(descriptor, True)
        self.pipe = Pipe(descriptor)

    def read(self, most=2**20):
        try:
            return os.read(self.end, most)
        except BlockingIOError:
            return b""


@pytest.fixture
def reader():
    reader = Reader()
    yield reader
    reader.pipe.close()
    os.close(reader.end)


def test_a_batch_arrives_whole(reader):
    assert reader.pipe.write(LINE * 10, 1)
    assert reader.read() == LINE * 10
    assert reader.pipe.dropped == 0


def test_a_batch_that_finds_no_room_is_dropped_and_counted(reader):
    full = b"f" * (reader.size - 1) + b"\n"
    assert reader.pipe.write(full, 1)
    assert not reader.pipe.write(LINE, 0)
    assert not reader.pipe.write(LINE, 0)
    assert reader.pipe.dropped == 2
    assert reader.read() == full
    assert reader.pipe.write(LINE, 1)
    assert reader.read() == LINE


def test_a_batch_begun_is_finished_before_another(reader):
    long = LINE * 100
    assert reader.pipe.write(long, 0)
    assert not reader.pipe.write(b"no\n", 0)
    received = reader.read()
    assert len(received) < len(long)
    while not reader.pipe.finish(0):
        received += reader.read()
    received += reader.read()
    assert received == long
    assert reader.pipe.write(b"yes\n", 0)
    assert reader.read() == b"yes\n"
    assert reader.pipe.dropped == 1


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(1, 200), st.integers(0, 3))))
def test_what_arrives_is_a_row_of_whole_batches(steps):
    reader = Reader()
    received, taken = b"", []
    for number, (lines, reads) in enumerate(steps):
        batch = b"%d " % number + LINE * lines
        if reader.pipe.write(batch, 0):
            taken.append(batch)
        received += b"".join(reader.read(1000) for _ in range(reads))
    while not reader.pipe.finish(0):
        received += reader.read()
    received += reader.read()
    assert received == b"".join(taken)
    assert reader.pipe.dropped == len(steps) - len(taken)
    reader.pipe.close()
    os.close(reader.end)


def test_a_reader_that_is_gone_is_the_end():
    other = Reader()
    os.close(other.end)
    with pytest.raises(OutputEnded):
        other.pipe.write(LINE, 1)
    other.pipe.close()
    other.pipe.close()


def test_whoever_shares_the_pipe_still_blocks():
    end, descriptor = os.pipe()
    shared = os.dup(descriptor)
    mine = unblocked(descriptor)
    assert (os.get_blocking(mine), os.get_blocking(shared)) == (False, True)
    for number in (end, shared, mine):
        os.close(number)


def test_a_socket_does_not_block_and_a_file_stays_as_it_is(tmp_path):
    ours, theirs = socket.socketpair()
    assert not os.get_blocking(unblocked(ours.fileno()))
    file = os.open(tmp_path / "lines", os.O_WRONLY | os.O_CREAT)
    assert unblocked(file) == file
    assert os.get_blocking(file)
    pipe = Pipe(file)
    assert pipe.write(LINE, 0)
    pipe.close()
    assert (tmp_path / "lines").read_bytes() == LINE
    ours.close()
    theirs.close()


def test_nothing_that_prints_reaches_a_claimed_standard_output():
    code = (
        "import os\n"
        "from cgotel.outputs.pipe import claim_standard_output\n"
        "mine = claim_standard_output()\n"
        "print('python', flush=True); os.write(1, b'library\\n'); os.system('echo child')\n"
        "os.write(mine, b'ours\\n')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout == b"ours\n"
    assert done.stderr.splitlines() == [b"python", b"library", b"child"]
