"""A socket that is missing, refuses, hangs, speaks something else, and a stream that overflows."""

import contextlib
import socket
import sys
import threading

import grpc
import pytest
from tests.unit.runtimes.grpc_server import Refused, Server

from cgotel.contract import State, Stop, Unavailable
from cgotel.runtimes import grpc_socket
from cgotel.runtimes.grpc_socket import CallFailed, GrpcSocket, Stream
from cgotel.runtimes.schema import messages

M = messages("tests.socket", {"Word": {"text": (1, "text")}})
WORD = M["Word"](text=b"hello")
LIMIT_S = 30


@pytest.fixture
def opened(tmp_path):
    made = []

    def open_(path=tmp_path / "s") -> GrpcSocket:
        connection = GrpcSocket(str(path), "tested", "do something")
        made.append(connection)
        connection.open()
        return connection

    yield open_
    for connection in made:
        connection.close()
        connection.close()


def take_all(stream: Stream, stop: Stop, taken: list[bytes]) -> None:
    """Take until the stream ends."""
    while stop.wait_for(stream.fileno(), LIMIT_S):
        taken += stream.take()


def echo(request, metadata):
    return request


def test_a_call_is_answered(tmp_path, opened) -> None:
    with Server(tmp_path / "s", {"/s/Echo": echo}):
        assert opened().call("/s/Echo", WORD, M["Word"]).text == b"hello"


def test_a_call_fails_with_its_code_and_its_words_on_one_line(tmp_path, opened) -> None:
    def refuse(request, metadata):
        raise Refused(grpc.StatusCode.NOT_FOUND, "no such\n\x1b[31mthing " + "x" * 5000)

    with Server(tmp_path / "s", {"/s/Get": refuse}):
        with pytest.raises(CallFailed, match="NOT_FOUND: no such") as failed:
            opened().call("/s/Get", WORD, M["Word"])
        assert failed.value.code == "NOT_FOUND"
        assert len(str(failed.value)) < 400
        assert str(failed.value).isprintable()


def test_half_a_message_is_a_failed_call(tmp_path, opened) -> None:
    half = {"/s/Half": lambda request, metadata: WORD.SerializeToString()[:-1]}
    with Server(tmp_path / "s", half), pytest.raises(CallFailed, match="DATA_LOSS"):
        opened().call("/s/Half", WORD, M["Word"])


@pytest.mark.parametrize(
    ("name", "state", "reason"),
    [
        ("missing", State.ABSENT, "No such file or directory"),
        ("file/s", State.ABSENT, "Not a directory"),
        ("stale", State.GONE, "nobody listens on it"),
        ("x" * 200, State.FAILED, "AF_UNIX path too long"),
    ],
)
def test_a_socket_without_a_daemon_is_unavailable(tmp_path, opened, name, state, reason) -> None:
    (tmp_path / "file").touch()
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(tmp_path / "stale"))
    with pytest.raises(Unavailable) as unavailable:
        opened(tmp_path / name)
    status = unavailable.value.status
    assert (status.name, status.state, status.remedy) == ("tested", state, "do something")
    assert reason in status.reason


def test_a_daemon_that_hangs_fails_in_time(tmp_path, opened, monkeypatch) -> None:
    monkeypatch.setattr(grpc_socket, "_TIMEOUT_S", 0.3)
    with socket.socket(socket.AF_UNIX) as deaf:
        deaf.bind(str(tmp_path / "s"))
        deaf.listen()
        with pytest.raises(CallFailed) as failed:
            opened().call("/s/Echo", WORD, M["Word"])
    assert failed.value.code in ("DEADLINE_EXCEEDED", "UNAVAILABLE")


def test_a_daemon_that_speaks_something_else_fails(tmp_path, opened) -> None:
    def serve(listener: socket.socket) -> None:
        while True:
            try:
                peer, _ = listener.accept()
            except OSError:
                return
            with peer, contextlib.suppress(OSError):
                peer.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        listener.listen()
        thread = threading.Thread(target=serve, args=(listener,), daemon=True)
        thread.start()
        with pytest.raises(CallFailed):
            opened().call("/s/Echo", WORD, M["Word"])
        listener.shutdown(socket.SHUT_RDWR)
    thread.join(LIMIT_S)


def test_without_grpc_it_says_what_to_install(tmp_path, opened, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "grpc", None)
    with pytest.raises(Unavailable) as unavailable:
        opened()
    assert unavailable.value.status.state is State.ABSENT
    assert unavailable.value.status.remedy == "pip install 'cgotel[containerd]'"


def test_a_stream_brings_messages_until_it_ends(tmp_path, opened) -> None:
    stop = Stop()
    with Server(tmp_path / "s", {}, ("/s/Watch",)) as server:
        stream = opened().stream("/s/Watch", WORD)
        assert server.subscribed.get(timeout=LIMIT_S) == WORD.SerializeToString()
        server.put(b"1", b"2")
        taken: list[bytes] = []
        while len(taken) < 2:
            assert stop.wait_for(stream.fileno(), LIMIT_S)
            taken += stream.take()
        assert taken == [b"1", b"2"]
        assert stream.take() == []
        assert not stop.wait_for(stream.fileno(), 0)
        server.put(b"3")
        server.end_streams()
        with pytest.raises(CallFailed, match="it ended the stream"):
            take_all(stream, stop, taken)
        assert taken[2:] == [b"3"]
        stream.close()


def test_what_comes_faster_than_it_is_taken_is_counted_and_kept_in_bounds() -> None:
    class Call(list):
        def cancel(self) -> None: ...

    stream, stop, taken = Stream(Call(bytes([n]) for n in range(100)), "tested", most=10), Stop(), []
    stream.close()
    with pytest.raises(CallFailed):
        take_all(stream, stop, taken)
    assert taken == [bytes([n]) for n in range(10)]
    assert (stream.dropped(), stream.dropped()) == (90, 0)
