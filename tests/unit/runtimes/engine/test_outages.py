"""What a daemon, or the agent, may do in the middle: forget, stall, refuse, end, send half of something."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.unit.runtimes.engine.engine_server import Engine
from tests.unit.runtimes.engine.test_following import A, B, S, listening, near, settled

from cgotel.contract import Bookmark, Roots, State, Timeline, Unavailable
from cgotel.evidence import Gap, RunEnded, RunStarted, RuntimeAction, RuntimeState
from cgotel.runtimes.docker import DockerWatcher
from cgotel.runtimes.engine import asker, watch
from cgotel.runtimes.engine.watcher import EngineWatcher
from cgotel.testing import watched

Watching = Callable[..., EngineWatcher]


def test_what_happened_while_nobody_looked_is_told_with_its_own_times(
    engine: Engine, watching: Watching
) -> None:
    bookmark = Bookmark()
    engine.container(A, Status="running", began=time.time_ns())
    with watched(watching(engine, bookmark)) as heard:
        heard.first(RunStarted)
        engine.happen("pause", A)
        engine.happen("unpause", A)
        heard.first(RuntimeAction, lambda e: e.action == "unpause")
    ended = time.time_ns()
    engine.container(A, Status="exited", ended=ended, ExitCode=9)
    engine.happen("die", A, exitCode="9")
    engine.container(B, "next", Status="running", began=time.time_ns())
    engine.happen("start", B)
    time.sleep(0.1)
    with watched(watching(engine, bookmark)) as heard:
        end = heard.first(RunEnded)
        heard.first(RunStarted)
        settled(engine, heard)
    assert near(end.time_ns, ended)
    assert [e.workload.id for e in heard.all(RunStarted)] == [B]
    assert {e.action for e in heard.all(RuntimeAction)} == {"top"}  # the pause was told before
    assert not heard.all(Gap)


def test_what_the_daemon_forgot_is_a_gap_and_ends_are_found_all_the_same(
    engine: Engine, watching: Watching, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "_REMEMBER_S", 0.5)
    bookmark = Bookmark()
    engine.container(A, Status="running", began=time.time_ns())
    engine.container("c" * 64, "old", Status="exited", began=S, ended=2 * S)
    with watched(watching(engine, bookmark)) as heard:
        heard.first(RunStarted)
        engine.happen("pause", A)
        left = heard.first(RuntimeAction).time_ns
    ended = time.time_ns()
    engine.container(A, Status="exited", ended=ended, ExitCode=255)
    engine.remembered.clear()  # dockerd was restarted, or 256 other events came
    with watched(watching(engine, bookmark)) as heard:
        gap, end = heard.first(Gap), heard.first(RunEnded)
        settled(engine, heard)
    assert gap.since_ns >= left
    assert "does not remember" in gap.reason
    assert (end.workload.id, end.code) == (A, 255)
    assert near(end.time_ns, ended)
    assert len(heard.all(RunEnded)) == 1  # the one that had ended long before is no news


def test_a_daemon_that_is_restarted_costs_nothing_of_what_it_still_knows(
    engine: Engine, watching: Watching, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "_REMEMBER_S", 0.5)
    watcher = watching(engine)
    engine.container(A, Status="running", began=time.time_ns())
    with pytest.raises(Unavailable, match="reset by peer"), watched(watcher) as heard:  # noqa: PT012
        heard.first(RunStarted)
        engine.happen("pause", A)
        heard.first(RuntimeAction)
        engine.hang_up()
        time.sleep(0.5)
    engine.remembered.clear()
    engine.containers.pop(A)  # removed meanwhile: nobody can say how it ended
    with watched(watcher) as heard:
        end = heard.first(RunEnded)
    assert heard.all(Gap)
    assert (end.workload.name, end.code) == ("web", None)
    assert end.uncertainty_ns > 0


def test_half_an_event_is_none_and_the_next_connection_brings_it_whole(
    engine: Engine, watching: Watching
) -> None:
    watcher = watching(engine)
    with pytest.raises(Unavailable), watched(watcher) as heard:  # noqa: PT012
        listening(engine)
        engine.happen("create", A)
        heard.first(RuntimeAction)
        with engine._lock:
            engine.send(b'{"Type":"container","Action":"die","Actor":{"ID":"')
        engine.hang_up()
        engine.happen("die", A, exitCode="3")
        time.sleep(0.5)
    assert not heard.all(RunEnded)
    with watched(watcher) as heard:
        assert heard.first(RunEnded).code == 3
    assert not heard.all(Gap)


def test_an_event_in_pieces_is_one_event(engine: Engine, watching: Watching) -> None:
    with watched(watching(engine)) as heard:
        listening(engine)
        engine.happen("pause", A)
        whole = engine.remembered[-1][1].replace(b"pause", b"unpause")
        for byte in whole:
            engine.send(bytes([byte]))
        heard.first(RuntimeAction, lambda e: e.action == "unpause")


@pytest.mark.parametrize(
    "garbage",
    [
        b"}{ no JSON\n",
        b'{"Type":"container","Action":7}\n',
        b"[1, 2]\n",
        b'{"Type":"container","Actor":{"ID":"' + b"\xff" * 64 + b'"}}\n',
        b'{"Type":"container","Action":"' + b"x" * (5 << 20) + b'"}\n',
    ],
    ids=["no JSON", "wrong type", "a list", "no UTF-8", "megabytes"],
)
def test_an_event_that_cannot_be_read_is_a_gap_and_no_end(
    engine: Engine, watching: Watching, garbage: bytes
) -> None:
    with watched(watching(engine)) as heard:
        listening(engine)
        engine.send(garbage)
        settled(engine, heard)
        assert "could not be read" in heard.first(Gap).reason


def test_what_is_about_no_container_by_its_id_is_left_alone(engine: Engine, watching: Watching) -> None:
    with watched(watching(engine)) as heard:
        listening(engine)
        for one in ("../../images/json", "", "a" * 63, "A" * 64):
            engine.happen("start", one)
        settled(engine, heard)
    assert not heard.all(RunStarted)
    assert not [target for _, target in engine.asked if "images" in target]


def test_a_stream_of_nothing_but_nonsense_is_given_up(engine: Engine, watching: Watching) -> None:
    with pytest.raises(Unavailable, match="no event"), watched(watching(engine)):  # noqa: PT012
        listening(engine)
        engine.send(b"x\n" * 1000)
        time.sleep(1)


def test_one_container_that_does_not_answer_costs_its_state_and_no_other(
    engine: Engine, watching: Watching, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asker, "PATIENCE_S", 0.5)
    with watched(watching(engine)) as heard:
        listening(engine)
        engine.stalls.add(f"containers/{A}")
        engine.happen("start", A, name="stuck")
        engine.happen("die", A, exitCode="137", name="stuck")
        engine.container(B, Status="running", began=time.time_ns())
        engine.happen("start", B)
        heard.first(RunStarted, lambda e: e.workload.id == B)
        assert heard.first(RunEnded).code == 137
    assert not heard.all(RuntimeState)


def test_a_daemon_that_hangs_is_lost_and_nothing_is_forgotten(
    engine: Engine, watching: Watching, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asker, "PATIENCE_S", 0.5)
    watcher = watching(engine)
    with pytest.raises(Unavailable, match="no answer in time"), watched(watcher) as heard:  # noqa: PT012
        listening(engine)
        engine.stalls.update(("containers/", "_ping"))
        engine.happen("die", A, exitCode="1")
        engine.happen("die", B, exitCode="2")
        heard.first(RunEnded)
        time.sleep(2)
    engine.stalls.clear()
    with watched(watcher) as again:
        again.first(RunEnded)
        settled(engine, again)
    ends = heard.all(RunEnded) + again.all(RunEnded)
    assert [end.code for end in ends if end.workload.id == B] == [2]


def test_a_hanging_daemon_does_not_keep_the_agent_from_stopping(engine: Engine, watching: Watching) -> None:
    began = time.monotonic()
    with watched(watching(engine), stop_timeout_s=60):
        listening(engine)
        engine.stalls.add("containers/")
        engine.happen("die", A, exitCode="1")
        time.sleep(0.2)
    assert time.monotonic() - began < 30


def test_one_that_hangs_from_the_first_is_unavailable(
    engine: Engine, watching: Watching, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cgotel.runtimes.engine.daemon._PATIENCE_S", 0.3)
    engine.stalls.add("version")
    with pytest.raises(Unavailable) as unavailable:
        watching(engine).start()
    assert unavailable.value.status.state is State.FAILED


def test_a_missing_socket_says_what_to_do(sockets: Path, watching: Watching) -> None:
    engine = Engine(sockets / "gone.sock")
    engine.close()
    with pytest.raises(Unavailable) as unavailable:
        watching(engine).start()
    status = unavailable.value.status
    assert (status.name, status.state) == ("docker", State.ABSENT)
    assert str(engine.path) in status.reason
    assert "[watchers.docker]" in status.remedy


def test_a_socket_that_nobody_listens_at_is_absent(sockets: Path, watching: Watching) -> None:
    engine = Engine(sockets / "dead.sock")
    engine._server.shutdown()
    engine._server.server_close()  # the file stays
    with pytest.raises(Unavailable) as unavailable:
        watching(engine).start()
    assert unavailable.value.status.state is State.ABSENT


def test_a_refused_socket_names_the_group(engine: Engine) -> None:
    """As another user where the tests run as root, whom no mode keeps out."""
    engine.path.chmod(0)
    engine.path.parent.chmod(0o755)
    program = (
        "import os, sys; os.getuid() or os.setuid(65534)\n"
        "from cgotel.runtimes.docker import DockerWatcher as W\n"
        "from cgotel.contract import *\n"
        "w = W(W.Config(socket=sys.argv[1]), Roots(), Timeline(), Bookmark())\n"
        "try: w.start()\n"
        "except Unavailable as e: print(e.status.state, e.status.remedy)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", "import cgotel.runtimes.docker, cgotel.runtimes.engine.daemon\n" + program,
         str(engine.path)],
        capture_output=True, check=False, text=True, timeout=60,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert done.stdout.startswith("denied "), done.stderr
    assert "group docker" in done.stdout


def test_dockers_socket_that_leads_to_podman_is_left_to_podmans_watcher(
    podman: Engine, watching: Watching
) -> None:
    podman.podman = False
    watcher = watching(podman)
    podman.podman = True
    with pytest.raises(Unavailable) as unavailable:
        watcher.start()
    assert unavailable.value.status.state is State.OFF
    assert unavailable.value.status.remedy == "watcher podman serves it"


def test_a_thousand_containers_in_a_moment_are_told_in_order_and_none_is_lost(
    engine: Engine, watching: Watching
) -> None:
    ids = [f"{number:064x}" for number in range(1000)]
    with watched(watching(engine), stop_timeout_s=60) as heard:
        listening(engine)
        for one in ids:
            engine.happen("create", one, name=one[-4:])
            engine.happen("start", one, name=one[-4:])
            engine.happen("die", one, name=one[-4:], exitCode="1")
            engine.happen("destroy", one, name=one[-4:])
        heard.first(
            RuntimeAction, lambda e: e.action == "destroy" and e.workload.id == ids[-1], timeout_s=100
        )
    assert [end.workload.id for end in heard.all(RunEnded)] == ids
    assert [start.workload.id for start in heard.all(RunStarted)] == ids
    asked = [target for _, target in engine.asked if target.endswith("/json")]
    assert len(asked) <= 3 * len(ids)
    assert not heard.all(Gap)


def test_a_damaged_bookmark_is_begun_anew(engine: Engine, watching: Watching) -> None:
    bookmark = Bookmark()
    bookmark.write(b'{"/run/docker.sock": {"alive": "no"}')
    engine.container(A, Status="running", began=time.time_ns())
    with watched(watching(engine, bookmark)) as heard:
        heard.first(RunStarted)
    assert str(engine.path).encode() in (bookmark.read() or b"")


def test_a_bookmark_is_written_when_there_is_news_only(engine: Engine, watching: Watching) -> None:
    written = []

    class Counted(Bookmark):
        def write(self, content: bytes) -> None:
            written.append(content)
            super().write(content)

    with watched(watching(engine, Counted())) as heard:
        listening(engine)
        settled(engine, heard)
        time.sleep(2.5)  # more than twice as long as the least time between two writes
    assert len(written) == len(set(written)) <= 3


def test_importing_the_watchers_brings_no_http() -> None:
    program = (
        "import sys, cgotel.runtimes.docker, cgotel.runtimes.podman; print('http.client' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        check=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.stdout == "False\n"


def test_of_several_daemons_one_that_is_lost_keeps_no_other_from_being_heard(
    engine: Engine, sockets: Path, watching: Watching, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Engine(sockets / "other.sock")
    watcher = watching(engine)
    monkeypatch.setattr(watcher, "config", type(watcher).Config())
    monkeypatch.setattr(type(watcher), "usual", (str(sockets / "*.sock"),))
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    with watched(watcher) as heard:
        listening(engine)
        listening(other)
        other.close()
        engine.happen("die", A, exitCode="1")
        assert heard.first(RunEnded).code == 1
        deadline = time.monotonic() + 30
        while all(status.state is State.OK for status in watcher.sources()):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        states = {status.name: status.state for status in watcher.sources()}
    assert states[str(engine.path)] is State.OK
    assert states[str(other.path)] is not State.OK


@pytest.mark.parametrize(
    ("setting", "environment", "expected"),
    [
        ("/run/a.sock", "unix:///run/b.sock", "/run/a.sock"),
        ("unix:///run/a.sock", "", "/run/a.sock"),
        ("", "unix:///run/b.sock", "/run/b.sock"),
        ("", "tcp://far:2376", "/run/c.sock"),  # whose containers are not on this host
        ("", "", "/run/c.sock"),
    ],
)
def test_where_the_socket_is(
    monkeypatch: pytest.MonkeyPatch, setting: str, environment: str, expected: str
) -> None:
    monkeypatch.setenv("DOCKER_HOST", environment)
    monkeypatch.setattr(DockerWatcher, "usual", ("/run/c.sock", "/nowhere/*.sock"))
    watcher = DockerWatcher(DockerWatcher.Config(socket=setting), Roots(), Timeline(), Bookmark())
    with pytest.raises(Unavailable, match=expected):
        watcher.start()
