"""The containerd watcher against a real gRPC server that speaks containerd's protocol.

Sequences and stamps are those of containerd 1.6.20, as `ctr events` printed them.
"""

import os
import signal
import subprocess
import time
import tomllib
from collections.abc import Iterator

import grpc
import pytest
from tests.unit.runtimes.containerd_server import ContainerdServer, event, stamp, task
from tests.unit.runtimes.grpc_server import Refused

from cgotel.config import ConfigError, Document
from cgotel.contract import Bookmark, Roots, State, Timeline, Unavailable
from cgotel.evidence import Gap, RunEnded, RunStarted, RuntimeAction, RuntimeState
from cgotel.runtimes import claims
from cgotel.runtimes import containerd_api as api
from cgotel.runtimes.containerd import ContainerdSettings, ContainerdWatcher
from cgotel.runtimes.process import process
from cgotel.testing import Heard, watched
from cgotel.watching import Watching

DEAD_PID = 2**22 - 1  # above pid_max of most hosts, and so of no process
SECOND = 10**9
MILLISECOND = 10**6
LIMIT_S = 30


@pytest.fixture
def server(tmp_path) -> Iterator[ContainerdServer]:
    with ContainerdServer(tmp_path / "containerd.sock") as server:
        yield server


@pytest.fixture
def living() -> Iterator[int]:
    """The pid of a process that lives as long as the test."""
    with subprocess.Popen(["sleep", "600"]) as child:
        yield child.pid
        child.kill()


def watcher(*sockets: str, bookmark: Bookmark | None = None) -> ContainerdWatcher:
    settings = ContainerdSettings(sockets=sockets)
    return ContainerdWatcher(settings, Roots.discover(), Timeline(), bookmark or Bookmark())


def subscribed(server: ContainerdServer) -> None:
    server.subscribed.get(timeout=LIMIT_S)


def exit_(name: str, at: int, pid: int = DEAD_PID, code: int = 0, **more) -> bytes:
    fields = {"container_id": name.encode(), "id": name.encode(), "exited_at": stamp(at)} | more
    return event("TaskExit", at + MILLISECOND, pid=pid, exit_status=code, **fields)


def delete(name: str, at: int, pid: int = DEAD_PID, code: int = 0) -> bytes:
    return event("TaskDelete", at, container_id=name.encode(), pid=pid, exit_status=code, exited_at=stamp(at))


def start(name: str, at: int, pid: int = DEAD_PID) -> bytes:
    return event("TaskStart", at, container_id=name.encode(), pid=pid)


def end_marker(server: ContainerdServer, heard: Heard) -> None:
    """All that was put before this was taken, and the watcher listens."""
    until = time.monotonic() + LIMIT_S
    while not heard.all(RuntimeAction, lambda e: e.action == "pause"):
        assert time.monotonic() < until
        server.put(event("TaskPaused", time.time_ns(), container_id=b"marker"))
        time.sleep(0.02)


def test_a_run_is_told_with_the_names_that_containerd_keeps(server) -> None:
    now = time.time_ns()
    labels = {"nerdctl/name": "web", "containerd.io/restart.count": "3"}
    server.keep("a" * 64, image="docker.io/library/nginx:1", labels=labels, cgroup="system.slice:nerdctl:x-1")
    with watched(watcher(server.path)) as heard:
        subscribed(server)
        server.put(start("a" * 64, now), exit_("a" * 64, now + SECOND, code=3))
        begun, ended = heard.first(RunStarted), heard.first(RunEnded)
    workload = begun.workload
    assert (workload.runtime, workload.id, workload.name) == ("containerd", "a" * 64, "web")
    assert (workload.image, workload.pid) == ("docker.io/library/nginx:1", DEAD_PID)
    assert begun.cgroup == workload.cgroup == "/system.slice/nerdctl-x-1.scope"
    assert begun.restart_count == 3
    assert ended.workload == workload
    assert (ended.code, ended.signal, ended.source) == (3, None, "containerd")
    assert ended.began_ns is not None
    assert ended.time_ns - ended.began_ns == pytest.approx(SECOND, abs=MILLISECOND)


def test_only_tasks_and_containers_are_subscribed_to(server) -> None:
    with watched(watcher(server.path)):
        request = server.subscribed.get(timeout=LIMIT_S)
    assert b'topic~="^/tasks/"' in request
    assert b'topic~="^/containers/"' in request


def test_the_cgroup_is_where_the_process_is_and_not_where_its_spec_asked_for(server, living) -> None:
    server.keep("web", cgroup="/elsewhere")
    with watched(watcher(server.path)) as heard:
        subscribed(server)
        server.put(start("web", time.time_ns(), living))
        found = process(living, Roots.discover())
        assert found is not None
        assert heard.first(RunStarted).cgroup == (found.cgroup or "/elsewhere")


def test_what_ran_before_is_told_with_the_start_of_its_process(server, living) -> None:
    server.tasks["default"] = [task("web", living), task("half-made", DEAD_PID, api.CREATED)]
    with watched(watcher(server.path)) as heard:
        begun = heard.first(RunStarted)
        end_marker(server, heard)
    assert abs(begun.time_ns - time.time_ns()) < 600 * SECOND
    assert begun.uncertainty_ns > 0
    assert [e.workload.name for e in heard.all(RunStarted)] == ["web"]


def test_an_id_that_is_no_number_is_one_only_within_its_namespace(server) -> None:
    now = time.time_ns()
    with watched(watcher(server.path)) as heard:
        subscribed(server)
        server.put(start("web", now), event("TaskStart", now, "other", container_id=b"web", pid=DEAD_PID - 1))
        heard.first(RunStarted, lambda e: e.workload.id == "other/web")
        heard.first(RunStarted, lambda e: e.workload.id == "default/web")


def test_an_exit_that_is_told_before_its_start_is_one_exit(server) -> None:
    now = time.time_ns()
    with watched(watcher(server.path)) as heard:
        subscribed(server)
        server.put(exit_("web", now), start("web", now - SECOND), exit_("web", now))
        end_marker(server, heard)
    assert (len(heard.all(RunStarted)), len(heard.all(RunEnded))) == (1, 1)


def test_an_exit_that_was_lost_is_taken_from_the_deletion(server) -> None:
    now = time.time_ns()
    with watched(watcher(server.path)) as heard:
        subscribed(server)
        server.put(start("web", now), delete("web", now + SECOND, code=7), exit_("web", now + SECOND))
        end_marker(server, heard)
    assert [e.code for e in heard.all(RunEnded)] == [7]


def test_the_end_of_an_exec_is_an_action(server) -> None:
    now = time.time_ns()
    with watched(watcher(server.path)) as heard:
        subscribed(server)
        server.put(start("web", now), exit_("web", now, DEAD_PID - 1, 137, id=b"probe"))
        told = heard.first(RuntimeAction, lambda e: e.action == "exec_die")
        assert (told.workload.name, told.reason) == ("web", "exit 137")
        end_marker(server, heard)
    assert not heard.all(RunEnded)


def test_what_happens_to_a_container_is_said_in_dockers_words(server) -> None:
    now = time.time_ns()
    server.keep("web", image="nginx")
    with watched(watcher(server.path)) as heard:
        subscribed(server)
        server.put(
            event("ContainerCreate", now, id=b"web", image=b"nginx"),
            event("TaskCreate", now, container_id=b"web", pid=DEAD_PID),
            start("web", now),
            event("TaskOOM", now + 1, container_id=b"web"),
            exit_("web", now, code=137),
            delete("web", now + SECOND, code=137),
            event("ContainerDelete", now + SECOND, id=b"web"),
        )
        heard.first(RuntimeAction, lambda e: e.action == "destroy")
    actions = [e.action for e in heard.all(RuntimeAction)]
    assert actions == ["create", "oom", "delete", "destroy"]
    assert {e.workload.image for e in heard.all(RuntimeAction)} == {"nginx"}


@pytest.mark.parametrize("code", [137, 255])
def test_a_code_that_containerd_made_up_for_a_dead_shim_is_said_to_be_made_up(server, code) -> None:
    now = time.time_ns()
    with watched(watcher(server.path)) as heard:
        subscribed(server)
        # 389500539 exit, 389532006 delete
        server.put(start("web", now - SECOND), exit_("web", now, code=code))
        server.put(delete("web", now + MILLISECOND + 31_467, code=code))
        told = heard.first(RuntimeAction, lambda e: e.action == "shim_died")
    assert str(code) in told.reason
    assert heard.first(RunEnded).code == code


def test_a_code_that_was_told_after_the_shim_died_is_made_up_however_slow_the_machine(server) -> None:
    with (
        subprocess.Popen(["sh", "-c", "sleep 600 & echo $!; wait"], stdout=subprocess.PIPE) as shim,
        watched(watcher(server.path)) as heard,
    ):
        assert shim.stdout is not None
        main = int(shim.stdout.readline())
        subscribed(server)
        server.put(start("web", time.time_ns(), main))
        heard.first(RunStarted)
        shim.kill()
        shim.wait(LIMIT_S)
        os.kill(main, signal.SIGKILL)
        now = time.time_ns() + 60 * SECOND  # in truth containerd needs 120 ms to clean up, or more
        server.put(exit_("web", now, main, 137), delete("web", now + SECOND, main, 137))
        end_marker(server, heard)
    kinds = [e.action if isinstance(e, RuntimeAction) else type(e) for e in heard.evidence]
    assert [kind for kind in kinds if kind != "pause"] == [RunStarted, "shim_died", RunEnded, "delete"]


@pytest.mark.parametrize(("code", "later_ns"), [(137, 12 * MILLISECOND), (1, 31_467)])
def test_a_deletion_by_a_client_is_no_death_of_the_shim(server, code, later_ns) -> None:
    now = time.time_ns()
    with watched(watcher(server.path)) as heard:
        subscribed(server)
        server.put(start("web", now - SECOND), exit_("web", now, code=code))
        server.put(delete("web", now + MILLISECOND + later_ns, code=code))
        end_marker(server, heard)
    assert not heard.all(RuntimeAction, lambda e: e.action == "shim_died")


def test_a_shim_that_lives_has_not_died(server, living) -> None:
    now = time.time_ns()
    with watched(watcher(server.path)) as heard:  # the test is the parent of the process
        subscribed(server)
        server.put(start("web", now - SECOND, living), exit_("web", now, living, 137))
        server.put(delete("web", now + MILLISECOND + 31_467, living, 137))
        end_marker(server, heard)
    assert not heard.all(RuntimeAction, lambda e: e.action == "shim_died")


def test_the_ends_of_dockers_containers_are_dockers_to_tell(server) -> None:
    now, name = time.time_ns(), b"d" * 64
    with watched(watcher(server.path)) as heard:
        subscribed(server)
        server.put(
            event("TaskStart", now, "moby", container_id=name, pid=DEAD_PID),
            event("TaskOOM", now, "moby", container_id=name),
            event("TaskExit", now, "moby", container_id=name, id=name, pid=DEAD_PID, exit_status=137),
        )
        told = heard.first(RuntimeAction, lambda e: e.action == "oom")
        end_marker(server, heard)
    assert told.workload.key == f"docker:{'d' * 64}"
    assert not heard.all(RunStarted)
    assert not heard.all(RunEnded)
    assert api.GET_CONTAINER not in server.asked


@pytest.mark.parametrize("at_work", [True, False])
def test_the_ends_of_pods_are_told_by_the_cri_watcher_where_it_is_at_work(server, at_work) -> None:
    now, name = time.time_ns(), b"c" * 64
    labels = {
        "io.kubernetes.container.name": "app",
        "io.kubernetes.pod.name": "web-0",
        "io.kubernetes.pod.namespace": "shop",
    }
    server.keep(name.decode(), "k8s.io", labels=labels)
    if at_work:
        claims.claim(server.path)
    try:
        with watched(watcher(server.path)) as heard:
            subscribed(server)
            server.put(
                event("TaskStart", now, "k8s.io", container_id=name, pid=DEAD_PID),
                event("TaskExit", now, "k8s.io", container_id=name, id=name, pid=DEAD_PID, exit_status=1),
                event("TaskOOM", now, "k8s.io", container_id=name),
            )
            told = heard.first(RuntimeAction, lambda e: e.action == "oom").workload
            end_marker(server, heard)
    finally:
        claims.release(server.path)
    assert told.runtime == ("cri" if at_work else "containerd")
    assert len(heard.all(RunEnded)) == (0 if at_work else 1)
    if not at_work:
        assert (told.name, told.pod, told.namespace) == ("shop/web-0/app", "web-0", "shop")


def test_a_task_that_stands_still_is_a_witness_and_told_as_an_exit_only_once_it_was_seen(server) -> None:
    now = time.time_ns()
    server.tasks["default"] = [task("old", DEAD_PID, api.STOPPED, 1, now - 3600 * SECOND)]
    bookmark = Bookmark()
    with watched(watcher(server.path, bookmark=bookmark)) as heard:
        state = heard.first(RuntimeState)
        end_marker(server, heard)
    assert (state.code, state.workload.name) == (1, "old")
    assert abs(state.time_ns - (now - 3600 * SECOND)) < SECOND
    assert not heard.all(RunEnded)
    assert not heard.all(Gap)

    exited_ns = time.time_ns()
    server.tasks["default"].append(task("new", DEAD_PID - 1, api.STOPPED, 2, exited_ns))
    with watched(watcher(server.path, bookmark=bookmark)) as heard:
        ended = heard.first(RunEnded)
        gap = heard.first(Gap)
        end_marker(server, heard)
    assert [(e.workload.name, e.code) for e in heard.all(RunEnded)] == [("new", 2)]
    assert gap.since_ns <= ended.time_ns <= gap.time_ns


def test_what_ended_and_was_removed_unseen_ended_somewhere_in_between(server, living) -> None:
    server.tasks["default"] = [task("web", living)]
    bookmark = Bookmark()
    with watched(watcher(server.path, bookmark=bookmark)) as heard:
        begun = heard.first(RunStarted)
    closed_ns = Timeline().now()
    server.tasks["default"].clear()
    with watched(watcher(server.path, bookmark=bookmark)) as heard:
        ended = heard.first(RunEnded)
    assert (ended.code, ended.workload) == (None, begun.workload)
    assert ended.time_ns - ended.uncertainty_ns <= closed_ns <= ended.time_ns + ended.uncertainty_ns
    assert "not seen ending" in ended.error


def test_a_run_that_still_runs_after_a_restart_is_not_told_again(server, living) -> None:
    server.tasks["default"] = [task("web", living)]
    bookmark = Bookmark()
    with watched(watcher(server.path, bookmark=bookmark)) as heard:
        heard.first(RunStarted)
    with watched(watcher(server.path, bookmark=bookmark)) as heard:
        end_marker(server, heard)
        server.put(exit_("web", time.time_ns(), living, 5))
        assert heard.first(RunEnded).code == 5
    assert not heard.all(RunStarted)


def test_a_task_that_was_replaced_unseen_ended_unseen(server, living) -> None:
    server.tasks["default"] = [task("web", living)]
    bookmark = Bookmark()
    with watched(watcher(server.path, bookmark=bookmark)) as heard:
        heard.first(RunStarted)
    server.tasks["default"] = [task("web", os.getpid())]
    with watched(watcher(server.path, bookmark=bookmark)) as heard:
        assert heard.first(RunEnded).workload.pid == living
        assert heard.first(RunStarted).workload.pid == os.getpid()


def test_a_bookmark_that_is_none_is_begun_anew(server, caplog) -> None:
    bookmark = Bookmark()
    bookmark.write(b"\xff{")
    with watched(watcher(server.path, bookmark=bookmark)) as heard:
        end_marker(server, heard)
    assert "begun anew" in caplog.text
    assert server.path.encode() in (bookmark.read() or b"")


def test_half_an_event_is_a_gap_and_the_next_one_is_taken(server) -> None:
    now = time.time_ns()
    whole = start("web", now)
    inner = event("TaskExit", now, container_id=b"web", id=b"web")
    broken = inner.replace(b"web", b"we\xf9", 1)[:-2]
    with watched(watcher(server.path)) as heard:
        subscribed(server)
        server.put(broken, b"\x0a\xff", whole)
        assert heard.first(RunStarted).workload.name == "web"
        assert "cannot be read" in heard.first(Gap).reason


def test_hostile_names_come_through_as_they_are(server) -> None:
    now = time.time_ns()
    name = "web\n\x1b[31m\x00" + "x" * 10_000
    server.keep(name, labels={"nerdctl/name": "\x1b]0;owned\x07"}, image="im\nage")
    with watched(watcher(server.path)) as heard:
        subscribed(server)
        server.put(start(name, now), event("TaskStart", now, container_id=b"\xff\xfe", pid=DEAD_PID - 1))
        assert heard.first(RunStarted).workload.name == "\x1b]0;owned\x07"
        heard.first(RunStarted, lambda e: e.workload.name == "\\xff\\xfe")


def test_a_thousand_containers_come_and_go_and_none_is_lost(server) -> None:
    now = time.time_ns()
    with watched(watcher(server.path)) as heard:
        subscribed(server)
        for number in range(1000):
            name = f"c{number}"
            server.put(start(name, now, 10**7 + number), exit_(name, now, 10**7 + number, number % 256))
        end_marker(server, heard)
    assert len(heard.all(RunStarted)) == 1000
    assert [e.code for e in heard.all(RunEnded)] == [number % 256 for number in range(1000)]
    assert not heard.all(Gap)


def test_a_pid_that_is_used_again_is_another_run(server) -> None:
    now = time.time_ns()
    with watched(watcher(server.path)) as heard:
        subscribed(server)
        server.put(start("a", now), exit_("a", now), start("b", now), exit_("b", now))
        end_marker(server, heard)
    assert [e.workload.name for e in heard.all(RunEnded)] == ["a", "b"]


def test_a_containerd_that_does_not_tell_of_a_container_costs_its_names_only(server) -> None:
    def refuse(request, metadata):
        raise Refused(grpc.StatusCode.INTERNAL, "boom")

    server.calls[api.GET_CONTAINER] = refuse
    now = time.time_ns()
    with watched(watcher(server.path)) as heard:
        subscribed(server)
        server.put(event("ContainerCreate", now, id=b"web", image=b"nginx"), start("web", now))
        assert heard.first(RunStarted).workload.image == "nginx"


def test_a_containerd_that_ends_is_gone_and_told_with_a_remedy(server) -> None:
    heard = Heard()
    watching = Watching([watcher(server.path)], heard.report)
    watching.start()
    try:
        subscribed(server)
        server.end_streams()
        subscribed(server)  # it is subscribed to again, by itself
        assert heard.first(Gap).since_ns <= heard.first(Gap).time_ns
    finally:
        watching.close()


def test_another_service_on_the_socket_is_no_containerd(tmp_path) -> None:
    with ContainerdServer(tmp_path / "s") as server:
        del server.calls[api.VERSION]
        with pytest.raises(Unavailable) as unavailable, watched(watcher(server.path)):
            pass
    assert unavailable.value.status.state is State.FAILED
    assert "UNIMPLEMENTED" in unavailable.value.status.reason
    assert "[watchers.containerd] sockets" in unavailable.value.status.remedy


def test_one_socket_of_several_may_be_missing(server, tmp_path) -> None:
    several = watcher(server.path, str(tmp_path / "none"))
    with watched(several) as heard:
        subscribed(server)
        server.put(start("web", time.time_ns()))
        heard.first(RunStarted)
        assert {s.name: s.state for s in several.sources()} == {
            server.path: State.OK,
            str(tmp_path / "none"): State.ABSENT,
        }
    with pytest.raises(Unavailable), watched(watcher(str(tmp_path / "none"), str(tmp_path / "nor"))):
        pass


@pytest.mark.parametrize("sockets", ['["relative.sock"]', "[]", '"/one"'])
def test_sockets_are_absolute_paths(sockets, tmp_path) -> None:
    document = Document("f", tomllib.loads(f"[watchers.containerd]\nsockets = {sockets}"))
    with pytest.raises(ConfigError):
        document.table("watchers.containerd", ContainerdSettings)
