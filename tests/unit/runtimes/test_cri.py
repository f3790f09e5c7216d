"""The CRI watcher against a real gRPC server that speaks the CRI."""

import os
import threading
import time
from collections.abc import Iterator

import grpc
import pytest
from tests.unit.runtimes.cri_server import CriServer
from tests.unit.runtimes.grpc_server import Refused

from cgotel.contract import Bookmark, Roots, State, Timeline, Unavailable
from cgotel.evidence import Gap, RunEnded, RunStarted, RuntimeState
from cgotel.runtimes import claims, cri, cri_daemon
from cgotel.runtimes import cri_api as api
from cgotel.runtimes.cri import CriSettings, CriWatcher
from cgotel.testing import tree, watched

SECOND = 10**9
LIMIT_S = 30
APP = "c" * 64


@pytest.fixture(autouse=True)
def _no_long_waits(monkeypatch) -> None:
    monkeypatch.setattr(cri_daemon, "_SETTLE_S", 0.1)


@pytest.fixture
def server(tmp_path) -> Iterator[CriServer]:
    with CriServer(tmp_path / "cri.sock") as server:
        yield server


def watcher(server: CriServer, bookmark: Bookmark | None = None) -> CriWatcher:
    settings = CriSettings(sockets=(server.path,), interval=0.1)
    return CriWatcher(settings, Roots.discover(), Timeline(), bookmark or Bookmark())


def listening(server: CriServer) -> None:
    server.subscribed.get(timeout=LIMIT_S)


def test_a_container_is_told_by_its_names_in_its_pod(server) -> None:
    now = time.time_ns()
    server.keep(APP, api.RUNNING, started_at=now, attempt=2, image_ref="sha256:1", pid=os.getpid())
    with watched(watcher(server)) as heard:
        begun = heard.first(RunStarted)
        listening(server)
        ended_at = {"started_at": now, "finished_at": now + SECOND}
        server.keep(APP, api.EXITED, exit_code=3, reason="Error", attempt=2, **ended_at)
        server.ring()
        ended = heard.first(RunEnded)
    workload = begun.workload
    assert (workload.runtime, workload.id, workload.name) == ("cri", APP, "shop/web-0/app")
    assert (workload.pod, workload.namespace, workload.image_id) == ("web-0", "shop", "sha256:1")
    assert (workload.pid, begun.restart_count) == (os.getpid(), 2)
    assert workload.cgroup is not None
    assert ended.workload == workload
    assert (ended.code, ended.started) == (3, True)
    assert ended.time_ns - begun.time_ns == pytest.approx(SECOND, abs=SECOND / 100)
    state = heard.first(RuntimeState)
    assert (state.reason, state.oom_killed, state.code, state.restart_count) == ("Error", False, 3, 2)
    assert len(heard.all(RunEnded)) == 1


def test_a_cgroup_that_cannot_be_seen_any_more_is_the_one_that_was_asked_for(server) -> None:
    server.keep(APP, api.RUNNING, started_at=time.time_ns(), pid=2**22 - 1)
    with watched(watcher(server)) as heard:
        assert heard.first(RunStarted).cgroup == "/kubepods/podx/c"


def test_a_reason_that_turns_later_is_told_again_and_is_no_second_end(server) -> None:
    now = time.time_ns()
    server.keep(APP, api.RUNNING, started_at=now)
    with watched(watcher(server)) as heard:
        heard.first(RunStarted)
        listening(server)
        ended = {"started_at": now, "finished_at": now + SECOND, "exit_code": 137}
        server.keep(APP, api.EXITED, reason="Error", **ended)
        server.ring()
        assert heard.first(RuntimeState).oom_killed is False
        server.keep(APP, api.EXITED, reason="OOMKilled", **ended)
        server.ring()
        heard.first(RuntimeState, lambda e: e.oom_killed is True)
    assert len(heard.all(RunEnded)) == 1


def test_a_container_that_could_not_start_did_not(server) -> None:
    now = time.time_ns()
    with watched(watcher(server)) as heard:
        listening(server)
        message = 'exec: "nope": executable file not found in $PATH'
        server.keep(
            APP, api.EXITED, finished_at=now + SECOND, exit_code=128, reason="StartError", message=message
        )
        server.ring()
        ended = heard.first(RunEnded)
    assert (ended.code, ended.started, ended.error) == (128, False, message)


@pytest.mark.parametrize("serves", ["no such method", "an error", "the end"])
def test_a_runtime_without_events_is_asked_again_and_again(server, serves) -> None:
    if serves == "no such method":
        server._streams = ()
    elif serves == "an error":

        def refuse(request, context):
            context.abort(grpc.StatusCode.UNKNOWN, "events are off")

        server._stream = refuse
    else:
        server._stream = lambda request, context: iter(())
    now = time.time_ns()
    with watched(watcher(server)) as heard:
        server.keep(APP, api.RUNNING, started_at=now)
        heard.first(RunStarted)
        server.keep(APP, api.EXITED, started_at=now, finished_at=now + 1)
        heard.first(RunEnded)


def test_of_a_containerd_before_2_no_event_is_taken_from_the_kubelet(tmp_path) -> None:
    with (
        CriServer(tmp_path / "s", version="1.7.24~ds1-6") as server,
        watched(watcher(server)) as heard,
    ):
        server.keep(APP, api.RUNNING, started_at=time.time_ns())
        heard.first(RunStarted)
        assert server.subscribed.empty()


def test_what_ended_long_ago_is_a_witness_and_what_ended_while_nobody_looked_an_end(server) -> None:
    now = time.time_ns()
    old = {"started_at": now - 7200 * SECOND, "finished_at": now - 3600 * SECOND}
    server.keep("a" * 64, api.EXITED, exit_code=1, **old)
    server.keep("b" * 64, api.RUNNING, started_at=now)
    server.keep("d" * 64, api.RUNNING, started_at=now)
    bookmark = Bookmark()
    with watched(watcher(server, bookmark)) as heard:
        heard.first(RuntimeState)
        heard.first(RunStarted, lambda e: e.workload.id == "b" * 64)
        heard.first(RunStarted, lambda e: e.workload.id == "d" * 64)
        listening(server)
    assert not heard.all(RunEnded)

    finished = time.time_ns()
    server.keep("b" * 64, api.EXITED, started_at=now, finished_at=finished, exit_code=2)
    server.keep("e" * 64, api.EXITED, started_at=finished, finished_at=finished + 1, exit_code=3)
    del server.containers["d" * 64]
    with watched(watcher(server, bookmark)) as heard:
        assert heard.first(RunEnded, lambda e: e.workload.id == "b" * 64).code == 2
        assert heard.first(RunEnded, lambda e: e.workload.id == "e" * 64).code == 3
        gone = heard.first(RunEnded, lambda e: e.workload.id == "d" * 64)
        assert "cgotel was not connected" in heard.first(Gap).reason
    assert gone.code is None
    assert gone.time_ns - gone.uncertainty_ns <= finished + SECOND
    assert len(heard.all(RunEnded)) == 3


def test_a_container_that_is_removed_between_two_looks_ended(server) -> None:
    server.keep(APP, api.RUNNING, started_at=time.time_ns())
    with watched(watcher(server)) as heard:
        heard.first(RunStarted)
        listening(server)
        server.containers.clear()
        server.ring()
        ended = heard.first(RunEnded)
    assert (ended.code, "not seen ending" in ended.error) == (None, True)


def test_a_container_that_is_gone_before_it_is_asked_for_costs_nothing(server) -> None:
    calls = dict(server.calls)

    def gone(request, metadata):
        raise Refused(grpc.StatusCode.NOT_FOUND, "gone")

    server.calls[api.CONTAINER_STATUS] = gone
    server.keep(APP, api.RUNNING, started_at=time.time_ns())
    with watched(watcher(server)) as heard:
        listening(server)
        server.calls.update(calls)
        server.ring()
        heard.first(RunStarted)


@pytest.mark.parametrize("info", [b"", b"{", b'{"pid": "x"}', b"[]", b"\xff"])
def test_what_else_a_runtime_tells_may_be_anything(server, info) -> None:
    from tests.unit.runtimes.cri_server import M

    server.keep(APP, api.RUNNING, started_at=time.time_ns())
    status = server.containers[APP][0]
    answer = M["ContainerStatusResponse"](status=status, info=[M["Entry"](key=b"info", value=info)])
    server.calls[api.CONTAINER_STATUS] = lambda request, metadata: answer.SerializeToString()
    with watched(watcher(server)) as heard:
        assert heard.first(RunStarted).workload.pid is None


def test_it_claims_the_pods_of_its_socket_while_it_is_at_work(server) -> None:
    assert not claims.claimed(server.path)
    with watched(watcher(server)):
        assert claims.claimed(server.path)
    assert not claims.claimed(server.path)


def test_a_runtime_that_is_lost_is_told(server) -> None:
    with pytest.raises(Unavailable) as lost, watched(watcher(server)) as heard:  # noqa: PT012
        server.keep(APP, api.RUNNING, started_at=time.time_ns())
        listening(server)
        server.ring()
        heard.first(RunStarted)

        failed = threading.Event()

        def fail(request, metadata):
            failed.set()
            raise Refused(grpc.StatusCode.UNAVAILABLE, "shutting down")

        server.calls[api.LIST_CONTAINERS] = fail
        server.ring()
        assert failed.wait(LIMIT_S)
    assert lost.value.status.state is State.GONE
    assert "shutting down" in lost.value.status.reason


def test_a_containerd_without_the_cri_says_so(server) -> None:
    del server.calls[api.VERSION]
    with pytest.raises(Unavailable) as unavailable:
        watcher(server).start()
    assert unavailable.value.status.state is State.OFF
    assert "the CRI is not served here" in unavailable.value.status.reason


@pytest.mark.parametrize(
    ("cgroups", "pods"),
    [
        ({"kubepods.slice": {}}, True),
        ({"kubepods": {}}, True),
        ({"kubelet": {"kubepods": {}}}, True),
        ({"kubelet.slice": {"kubelet-kubepods.slice": {}}}, True),
        ({"system.slice": {}, "kubepods.txt": "a file"}, False),
    ],
)
def test_without_a_kubelet_it_is_off(cgroups, pods, server, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(cri, "USUAL", (server.path, str(tmp_path / "none")))
    roots = Roots(cgroup=str(tree(cgroups, into=tmp_path / "cgroup")))
    usual = CriWatcher(CriSettings(), roots, Timeline(), Bookmark())
    if pods:
        usual.start()
        usual.close()
    else:
        with pytest.raises(Unavailable) as unavailable:
            usual.start()
        assert unavailable.value.status.state is State.OFF
        assert "kubepods" in unavailable.value.status.reason


def test_with_a_kubelet_and_no_runtime_it_is_absent(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(cri, "USUAL", (str(tmp_path / "none"),))
    roots = Roots(cgroup=str(tree({"kubepods": {}}, into=tmp_path / "cgroup")))
    with pytest.raises(Unavailable) as unavailable:
        CriWatcher(CriSettings(), roots, Timeline(), Bookmark()).start()
    assert unavailable.value.status.state is State.ABSENT
