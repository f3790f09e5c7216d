"""Probes against real servers and real programs on this machine: well, ill, slow, hanging, hostile."""

import contextlib
import signal
import socket
import ssl
import sys
import threading
import time
import tomllib
from collections.abc import Callable, Iterator
from typing import Self

import pytest
import trustme

from cgotel.config import ConfigError, Document
from cgotel.contract import Bookmark, Roots, State, Timeline, Unavailable
from cgotel.evidence import ProbeResult, Workload
from cgotel.testing import watched
from cgotel.watchers.probes.history import History
from cgotel.watchers.probes.settings import Probe, ProbesSettings
from cgotel.watchers.probes.watcher import ProbesWatcher, workload_of

LIMIT_S = 30


def probe(kind: str, target: object, **more: object) -> Probe:
    given = {"name": "p", "kind": kind, "target": target, "workload": "web", "interval": 0.1, "timeout": 10.0}
    return Probe(**(given | more))  # type: ignore[arg-type]


def watcher(*probes: Probe) -> ProbesWatcher:
    return ProbesWatcher(ProbesSettings(probe=probes), Roots(), Timeline(), Bookmark())


def first(*probes: Probe) -> ProbeResult:
    with watched(watcher(*probes)) as heard:
        return heard.first(ProbeResult)


class Server:
    """A TCP server of which each connection is served by a function of the test."""

    def __init__(self, serve: Callable[[socket.socket], None], context: ssl.SSLContext | None = None) -> None:
        self._serve = serve
        self._context = context
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.connections = 0
        self._threads = [threading.Thread(target=self._accept, daemon=True)]

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                peer, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve_one, args=(peer,), daemon=True).start()

    def _serve_one(self, peer: socket.socket) -> None:
        with peer, contextlib.suppress(OSError):
            if self._context is None:
                self._serve(peer)
                return
            with self._context.wrap_socket(peer, server_side=True) as secured:
                self._serve(secured)


def answering(answer: bytes, asked: list[bytes] | None = None) -> Callable[[socket.socket], None]:
    def serve(peer: socket.socket) -> None:
        request = peer.recv(65536)
        if asked is not None:
            asked.append(request)
        peer.sendall(answer)

    return serve


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@pytest.fixture
def until_the_end() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


# HTTP


@pytest.mark.parametrize(
    ("answer", "ok", "text"),
    [
        (OK, True, "200 OK"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", True, "204 No Content"),
        (b"HTTP/1.1 399 \r\n\r\n", True, "399"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", False, "400 Bad Request"),
        (b"HTTP/1.1 503 Service Unavailable\r\n\r\n", False, "503 Service Unavailable"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + OK, True, "200 OK"),
        (b"HTTP/1.0 200 OK\r\n\r\n" + b"x" * 10_000_000, True, "200 OK"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", False, "SSH-2.0"),
        (b"", False, "without response"),
        (b"HTTP/1.1 503 " + b"x" * 60_000 + b"\r\n\r\n", False, "503 xxx"),
        (b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 1000, False, "100 headers"),
    ],
)
def test_a_status_from_200_to_399_is_well(answer: bytes, ok: bool, text: str) -> None:
    with Server(answering(answer)) as server:
        result = first(probe("http", f"http://127.0.0.1:{server.port}/"))
    assert (result.ok, text in result.text, len(result.text) <= 500) == (ok, True, True), result.text


def test_what_is_asked_is_a_get_of_that_path_with_that_host() -> None:
    asked: list[bytes] = []
    with Server(answering(OK, asked)) as server:
        first(probe("http", f"http://127.0.0.1:{server.port}/health?full=1#part"))
    lines = asked[0].split(b"\r\n")
    assert lines[0] == b"GET /health?full=1 HTTP/1.1"
    assert f"Host: 127.0.0.1:{server.port}".encode() in lines
    assert any(line.startswith(b"User-Agent: cgotel/") for line in lines)


def test_a_redirect_is_an_answer_and_is_not_followed() -> None:
    with Server(answering(OK)) as other:
        moved = f"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:{other.port}/\r\n\r\n"
        with Server(answering(moved.encode())) as server:
            result = first(probe("http", f"http://127.0.0.1:{server.port}/"))
        assert (result.ok, result.text, other.connections) == (True, "302 Found", 0)


def test_the_latency_is_that_of_the_answer() -> None:
    def slow(peer: socket.socket) -> None:
        peer.recv(65536)
        time.sleep(0.3)
        peer.sendall(OK)

    with Server(slow) as server:
        result = first(probe("http", f"http://127.0.0.1:{server.port}/"))
    assert result.latency_s is not None
    assert 0.3 <= result.latency_s < 10


@pytest.mark.parametrize("words", [b"", b"HTTP/1.1 200 OK\r\n"], ids=["mute", "half"])
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_server_that_says_nothing_more_is_not_in_time(until_the_end, words: bytes, scheme: str) -> None:
    def hang(peer: socket.socket) -> None:
        peer.sendall(words)
        until_the_end.wait(LIMIT_S)

    with Server(hang) as server:
        result = first(probe("http", f"{scheme}://127.0.0.1:{server.port}/", timeout=0.3))
    assert not result.ok
    if scheme == "http" or not words:
        assert result.text == "not in time"


def test_a_server_that_answers_byte_by_byte_for_ever_is_called_off(until_the_end) -> None:
    def drip(peer: socket.socket) -> None:
        while not until_the_end.wait(0.05):
            peer.sendall(b"x")

    with Server(drip) as server:
        dripping = probe("http", f"http://127.0.0.1:{server.port}/", timeout=0.3)
        with watched(watcher(dripping)) as heard:
            heard.first(ProbeResult, lambda e: e.failures == 4)
            assert server.connections > 1  # the attempts before had come back
    assert {e.ok for e in heard.all(ProbeResult)} == {False}


@pytest.mark.parametrize("insecure", [False, True])
def test_a_certificate_is_verified_unless_that_is_switched_off(insecure: bool) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
    with Server(answering(OK), context) as server:
        result = first(probe("http", f"https://127.0.0.1:{server.port}/", insecure=insecure))
    assert result.ok is insecure
    if not insecure:
        assert "CERTIFICATE_VERIFY_FAILED" in result.text


# TCP


def test_a_connection_that_is_taken_is_well_and_a_port_nobody_listens_on_is_not() -> None:
    with Server(lambda peer: None) as server:
        assert first(probe("tcp", f"127.0.0.1:{server.port}")).ok
    result = first(probe("tcp", f"127.0.0.1:{server.port}"))
    assert (result.ok, result.failures) == (False, 1)
    assert "refused" in result.text


def test_a_host_without_an_address_fails() -> None:
    result = first(probe("tcp", "no-such-host.invalid:80"))
    assert not result.ok
    assert result.text


def test_ipv6_is_meant_by_brackets() -> None:
    try:
        listener = socket.create_server(("::1", 0), family=socket.AF_INET6)
    except OSError:
        pytest.skip("no IPv6 here")
    with listener:
        assert first(probe("tcp", f"[::1]:{listener.getsockname()[1]}")).ok


# Commands


def python(program: str) -> tuple[str, ...]:
    return (sys.executable, "-c", program)


@pytest.mark.parametrize(
    ("words", "ok", "text"),
    [
        (("true",), True, "exit status 0"),
        ("sh -c 'echo all well; exit 0'", True, "exit status 0: all well"),
        (("sh", "-c", "echo out; echo err >&2; exit 3"), False, "exit status 3: out\nerr"),
        (("sh", "-c", "kill -9 $$"), False, "signal 9"),
        (("echo", "$HOME;", "`id`"), True, "exit status 0: $HOME; `id`"),
        (("/no/such/program",), False, "No such file or directory"),
        (("/",), False, "Permission denied"),
        (("printf", r"\377\033[31m"), True, "exit status 0: \\xff\x1b[31m"),
    ],
)
def test_a_program_is_well_if_it_exits_with_0(words: object, ok: bool, text: str) -> None:
    result = first(probe("command", words))
    assert (result.ok, text in result.text) == (ok, True), result.text


def test_a_program_sees_nothing_of_the_agents_environment(monkeypatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "api-key=secret")
    result = first(probe("command", python("import os; print(sorted(os.environ), os.getcwd())")))
    assert "OTEL" not in result.text
    assert "'PATH'" in result.text
    assert result.text.endswith("/")


def test_too_much_output_is_cut_and_blocks_nothing() -> None:
    flood = "import sys\nfor _ in range(300): sys.stdout.write('x' * 65536)\nsys.exit(4)"
    result = first(probe("command", python(flood), timeout=30.0))
    assert result.text.startswith("exit status 4: xxx")
    assert len(result.text) <= 500


def lives(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def eventually(holds: Callable[[], object]) -> None:
    until = time.monotonic() + LIMIT_S
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.02)


@pytest.mark.parametrize("way", ["at its timeout", "at its own end"])
def test_a_program_and_its_children_are_gone_in_the_end(tmp_path, way: str) -> None:
    pids = tmp_path / "pids"
    rest = "wait" if way == "at its timeout" else "exit 0"
    script = f"trap '' TERM; sleep 600 & echo $! $$ > {pids}.new; mv {pids}.new {pids}; {rest}"
    timeout_s = 1.0 if way == "at its timeout" else 20.0
    result = first(probe("command", ("sh", "-c", script), timeout=timeout_s, interval=600.0))
    assert result.ok is (way == "at its own end")
    if not result.ok:
        assert result.text == "not in time"
    if pids.exists():  # a very slow machine may not come so far within a second
        for pid in map(int, pids.read_text().split()):
            eventually(lambda pid=pid: not lives(pid))


def test_a_program_that_is_still_running_ends_with_the_watcher(tmp_path) -> None:
    pid = tmp_path / "pid"
    script = f"echo $$ > {pid}.new; mv {pid}.new {pid}; exec sleep 600"
    with watched(watcher(probe("command", ("sh", "-c", script), timeout=600.0))):
        eventually(pid.exists)
    eventually(lambda: not lives(int(pid.read_text())))


def test_a_program_that_stops_itself_is_killed() -> None:
    result = first(
        probe("command", python(f"import os; os.kill(os.getpid(), {int(signal.SIGSTOP)})"), timeout=1.0)
    )
    assert (result.ok, result.text) == (False, "not in time")


# In time


def test_a_probe_that_hangs_delays_no_other(until_the_end, monkeypatch) -> None:
    """Even where it hangs in what cannot be called off: a resolver."""
    real = socket.getaddrinfo

    def resolve(host: object, *arguments: object, **more: object) -> object:
        if host == "hangs.invalid":
            until_the_end.wait(LIMIT_S)
        return real(host, *arguments, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    with Server(answering(OK)) as server:
        hanging = probe("tcp", "hangs.invalid:80", name="hangs", timeout=0.2)
        well = probe("http", f"http://127.0.0.1:{server.port}/", name="well")
        with watched(watcher(hanging, well)) as heard:
            heard.first(ProbeResult, lambda e: e.probe == "well" and e.ok)
            before = server.connections
            again = heard.first(ProbeResult, lambda e: e.text == "an earlier attempt still hangs")
            eventually(lambda: server.connections > before)
            assert again.probe == "hangs"
            texts = [e.text for e in heard.all(ProbeResult, lambda e: e.probe == "hangs")]
            assert texts[0] == "not in time"


def test_what_is_told_is_the_first_the_changes_and_what_is_near_a_failure() -> None:
    ill = threading.Event()

    def serve(peer: socket.socket) -> None:
        peer.recv(65536)
        peer.sendall(b"HTTP/1.1 500 Ill\r\n\r\n" if ill.is_set() else OK)

    with Server(serve) as server, watched(watcher(probe("http", f"http://127.0.0.1:{server.port}"))) as heard:
        eventually(lambda: server.connections > 8)
        assert len(heard.all(ProbeResult)) == 1
        ill.set()
        heard.first(ProbeResult, lambda e: e.failures == 2)
        ill.clear()
        eventually(lambda: server.connections > 30)
    told = heard.all(ProbeResult)
    rows = [(e.ok, e.failures) for e in told]
    begin = rows.index((False, 1))
    assert rows[:begin] == [(True, None)] * 4
    assert len([row for row in rows if row[0]]) == 8
    assert [e.time_ns for e in told] == sorted(e.time_ns for e in told)
    assert {(e.source, e.probe, e.threshold, e.workload.name) for e in told} == {("probes", "p", 3, "web")}


def result(ok: bool, failures: int | None = None) -> ProbeResult:
    return ProbeResult(
        source="probes", time_ns=0, workload=Workload(runtime="", id="x"), ok=ok, failures=failures
    )


def test_a_failure_for_ever_is_told_less_and_less_often() -> None:
    history = History(threshold=3)
    told = [e.failures for n in range(1, 100_000) for e in history.add(result(False, n))]
    assert told[:13] == list(range(1, 14))
    assert len(told) < 32


def test_a_state_that_changes_at_each_look_is_told_once_each() -> None:
    history = History(threshold=3)
    told = [e for n in range(100) for e in history.add(result(n % 2 == 0, 1 if n % 2 else None))]
    assert len(told) == 100


def test_hundreds_of_probes_come_to_their_turn() -> None:
    with Server(lambda peer: None) as server:
        probes = [probe("tcp", f"127.0.0.1:{server.port}", name=f"p{n}", interval=5.0) for n in range(200)]
        with watched(watcher(*probes)) as heard:
            eventually(lambda: len({e.probe for e in heard.all(ProbeResult)}) == 200)


def test_no_probe_is_configured() -> None:
    with pytest.raises(Unavailable) as unavailable:
        watcher().start()
    assert (unavailable.value.status.state, unavailable.value.status.name) == (State.OFF, "probes")


@pytest.mark.parametrize(
    ("named", "workload"),
    [
        ("/ai.slice/", Workload(runtime="cgroup", id="/ai.slice/", cgroup="/ai.slice")),
        ("web.service", Workload(runtime="systemd", id="web.service", name="web.service")),
        ("web", Workload(runtime="", id="web", name="web")),
    ],
)
def test_for_whom_a_probe_speaks(named: str, workload: Workload) -> None:
    assert workload_of(named) == workload


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ('kind = "http"\ntarget = "127.0.0.1:80"', "target must be a URL"),
        ('kind = "http"\ntarget = "http://u:secret@h/"', "no user and no password"),
        ('kind = "http"\ntarget = "http://h:99999/"', "target must be a URL"),
        ('kind = "http"\ntarget = "http://h/a b"', "target must be a URL"),
        ('kind = "tcp"\ntarget = "h"', "HOST:PORT"),
        ('kind = "tcp"\ntarget = "h:0"', "HOST:PORT"),
        ('kind = "tcp"\ntarget = ["h:1"]', "one piece of text"),
        ('kind = "command"\ntarget = ""', "target"),
        ('kind = "command"\ntarget = "unclosed \'"', "quotation"),
        ('kind = "exec"\ntarget = "x"', "kind"),
        ('kind = "tcp"\ntarget = "h:1"\ninterval = 0', "interval"),
        ('kind = "tcp"\ntarget = "h:1"\nretries = 1', "retries"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_one_line(lines: str, message: str) -> None:
    text = f'[[watchers.probes.probe]]\nname = "p"\nworkload = "web"\n{lines}'
    document = Document("f", tomllib.loads(text))
    with pytest.raises(ConfigError) as refused:
        document.table("watchers.probes", ProbesSettings)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_two_probes_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="two probes are called 'p'"):
        ProbesSettings(probe=(probe("tcp", "h:1"), probe("tcp", "h:2")))
