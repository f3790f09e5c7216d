"""The containerd watcher beside a real containerd: each end told once, by whom it was, and when."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest
from tests.lab.guest.own_containerd import Containerd, eventually

from cgotel.contract import Bookmark, Roots, State, Timeline
from cgotel.evidence import Gap, RunEnded, RunStarted, RuntimeAction, RuntimeState
from cgotel.runtimes.containerd import ContainerdSettings, ContainerdWatcher
from cgotel.runtimes.process import process
from cgotel.testing import Heard, watched
from cgotel.watching import Watching

pytestmark = pytest.mark.only_on("6.1")

LIMIT_S = 90


@pytest.fixture(scope="module")
def containerd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Containerd]:
    with Containerd(tmp_path_factory.mktemp("containerd")) as running:
        yield running


def watcher(containerd: Containerd, bookmark: Bookmark | None = None) -> ContainerdWatcher:
    settings = ContainerdSettings(sockets=(containerd.socket,))
    return ContainerdWatcher(settings, Roots.discover(), Timeline(), bookmark or Bookmark())


@pytest.fixture
def heard(containerd: Containerd) -> Iterator[Heard]:
    containerd.run("beacon")
    with watched(watcher(containerd)) as heard:
        started(heard, "beacon")  # so it listens
        yield heard
        containerd.remove("beacon")


def started(heard: Heard, name: str) -> RunStarted:
    return heard.first(RunStarted, lambda e: e.workload.name == name, LIMIT_S)


def ended(heard: Heard, name: str) -> RunEnded:
    return heard.first(RunEnded, lambda e: e.workload.name == name, LIMIT_S)


def action(heard: Heard, name: str, what: str) -> RuntimeAction:
    return heard.first(RuntimeAction, lambda e: (e.workload.name, e.action) == (name, what), LIMIT_S)


def ends(heard: Heard, name: str) -> int:
    return len(heard.all(RunEnded, lambda e: e.workload.name == name))


def test_a_run_is_told_from_its_beginning_to_its_end(containerd: Containerd, heard: Heard) -> None:
    containerd.run("plain", "/bin/sh", "-c", "sleep 1; exit 3")
    begun = started(heard, "plain")
    end = ended(heard, "plain")
    assert begun.workload.id == "default/plain"
    assert begun.workload.image.endswith("/busybox:1")
    assert begun.cgroup == "/default/plain"
    assert (end.code, end.workload) == (3, begun.workload)
    assert end.began_ns is not None
    assert 900_000_000 < end.time_ns - end.began_ns < LIMIT_S * 10**9
    containerd.remove("plain")
    action(heard, "plain", "destroy")
    assert ends(heard, "plain") == 1


def test_what_lives_for_a_moment_only_is_told_with_its_cgroup(containerd: Containerd, heard: Heard) -> None:
    names = [f"brief-{number}" for number in range(3)]
    for name in names:
        containerd.ctr("run", "--rm", "--snapshotter", "native", "docker.io/lab/busybox:1", name, "/bin/true")
    for name in names:
        assert (ended(heard, name).code, ended(heard, name).cgroup) == (0, f"/default/{name}")


def test_an_oom_kill_is_told_beside_the_end(containerd: Containerd, heard: Heard) -> None:
    options = ("--memory-limit", str(32 << 20))
    containerd.run("greedy", "/bin/sh", "-c", "exec tail /dev/zero", options=options)
    assert ended(heard, "greedy").code == 137
    action(heard, "greedy", "oom")
    containerd.remove("greedy")


def test_a_shim_that_was_killed_is_told_for_the_made_up_code_is_not_the_containers(
    containerd: Containerd, heard: Heard
) -> None:
    containerd.run("orphan")
    main = process(containerd.pid("orphan"), Roots())
    assert main is not None
    os.kill(main.parent, signal.SIGKILL)
    assert ended(heard, "orphan").code == 137
    assert "its shim had died" in action(heard, "orphan", "shim_died").reason
    containerd.remove("orphan")


def test_a_kill_of_the_main_process_is_no_death_of_the_shim(containerd: Containerd, heard: Heard) -> None:
    containerd.run("killed")
    os.kill(containerd.pid("killed"), signal.SIGKILL)
    assert ended(heard, "killed").code == 137
    containerd.remove("killed")
    action(heard, "killed", "destroy")
    assert not heard.all(RuntimeAction, lambda e: e.action == "shim_died" and e.workload.name == "killed")


def test_the_end_of_an_exec_is_no_end_of_the_container(containerd: Containerd, heard: Heard) -> None:
    containerd.ctr("tasks", "exec", "--exec-id", "probe", "beacon", "/bin/true")
    assert action(heard, "beacon", "exec_die").reason == "exit 0"
    assert ends(heard, "beacon") == 0


def test_dockers_containers_are_left_to_docker(containerd: Containerd, heard: Heard) -> None:
    name = "d" * 64
    containerd.run(name, "/bin/sh", "-c", "exit 4", namespace="moby")
    containerd.remove(name, namespace="moby")
    destroyed = heard.first(RuntimeAction, lambda e: e.workload.id == name and e.action == "destroy", LIMIT_S)
    assert destroyed.workload.runtime == "docker"
    assert not heard.all(RunStarted, lambda e: e.workload.id == name)
    assert not heard.all(RunEnded, lambda e: e.workload.id == name)


def test_what_ended_while_nobody_watched_is_told_with_its_own_time(containerd: Containerd) -> None:
    containerd.run("early", "/bin/true")
    containerd.run("late")
    containerd.run("gone")
    bookmark = Bookmark()
    with watched(watcher(containerd, bookmark)) as first:
        assert first.first(RuntimeState, lambda e: e.workload.name == "early", LIMIT_S).code == 0
        begun = started(first, "late")
        started(first, "gone")
    containerd.ctr("tasks", "kill", "-s", "SIGKILL", "late")
    containerd.remove("gone")
    left_ns = Timeline().now()
    with watched(watcher(containerd, bookmark)) as second:
        late = ended(second, "late")
        assert (late.code, late.workload) == (137, begun.workload)
        assert late.time_ns < left_ns
        gone = ended(second, "gone")
        assert (gone.code, gone.uncertainty_ns > 0) == (None, True)
        assert gone.time_ns - gone.uncertainty_ns < left_ns < gone.time_ns + gone.uncertainty_ns
        assert second.first(Gap).since_ns < late.time_ns
    assert ends(second, "early") == 0
    containerd.remove("early")
    containerd.remove("late")


def test_a_containerd_that_stops_is_said_to_be_gone_and_taken_up_again(containerd: Containerd) -> None:
    containerd.run("survivor")
    heard = Heard()
    watching = Watching([watcher(containerd)], heard.report)
    watching.start()
    try:
        begun = started(heard, "survivor")
        containerd.stop()
        eventually(lambda: [s.state for s in watching.sources()] == [State.GONE], "it is said to be gone")
        os.kill(begun.workload.pid or 0, signal.SIGKILL)
        containerd.start()
        end = ended(heard, "survivor")
        # containerd 1.7 takes a shim whose process has ended for a leaked one, and forgets its code
        assert (end.code, end.uncertainty_ns > 0) in ((137, False), (None, True))
        assert end.workload == begun.workload
        heard.first(Gap, lambda e: "not connected" in e.reason)
        assert [source.state for source in watching.sources()] == [State.OK]
        assert ends(heard, "survivor") == 1
    finally:
        watching.close()
    containerd.remove("survivor")
