"""The CRI watcher, and containerd's beside it, on pods of a real containerd."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.lab.guest.own_containerd import Containerd
from tests.lab.guest.pods import Pod

from cgotel.contract import Bookmark, Roots, Timeline
from cgotel.evidence import RunEnded, RunStarted, RuntimeAction, RuntimeState
from cgotel.runtimes.containerd import ContainerdSettings, ContainerdWatcher
from cgotel.runtimes.cri import CriSettings, CriWatcher
from cgotel.runtimes.grpc_socket import CallFailed
from cgotel.testing import Heard, watched

pytestmark = pytest.mark.only_on("6.1")

LIMIT_S = 90


@pytest.fixture(scope="module")
def containerd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Containerd]:
    with Containerd(tmp_path_factory.mktemp("containerd")) as running:
        yield running


@pytest.fixture(scope="module")
def heard(containerd: Containerd) -> Iterator[Heard]:
    settings = CriSettings(sockets=(containerd.socket,), interval=0.5)
    with watched(CriWatcher(settings, Roots.discover(), Timeline(), Bookmark())) as heard:
        yield heard


@pytest.fixture(scope="module")
def pod(containerd: Containerd, heard: Heard) -> Iterator[Pod]:
    pod = Pod(containerd.socket, "web-0")
    yield pod
    pod.remove()


def ended(heard: Heard, container_id: str) -> RunEnded:
    return heard.first(RunEnded, lambda e: e.workload.id == container_id, LIMIT_S)


def state(heard: Heard, container_id: str, reason: str) -> RuntimeState:
    return heard.first(RuntimeState, lambda e: (e.workload.id, e.reason) == (container_id, reason), LIMIT_S)


def test_a_container_of_a_pod_is_told_with_its_names_and_its_cgroup(pod: Pod, heard: Heard) -> None:
    container_id = pod.run("app", "/bin/sh", "-c", "sleep 3; exit 3", attempt=2)
    begun = heard.first(RunStarted, lambda e: e.workload.id == container_id, LIMIT_S)
    assert begun.workload.name == "lab/web-0/app"
    assert begun.cgroup == f"/kubepods/podweb-0/{container_id}"
    assert begun.workload.pid is not None
    assert begun.restart_count == 2
    end = ended(heard, container_id)
    assert (end.code, end.workload) == (3, begun.workload)
    assert state(heard, container_id, "Error").oom_killed is False


def test_an_oom_kill_has_the_runtimes_word_for_it(pod: Pod, heard: Heard) -> None:
    container_id = pod.run("greedy", "/bin/tail", "/dev/zero", memory=32 << 20)
    assert ended(heard, container_id).code == 137
    assert state(heard, container_id, "OOMKilled").oom_killed is True


def test_a_program_that_is_not_there_did_not_start(pod: Pod, heard: Heard) -> None:
    container_id = pod.make("nothing", "/no/such/program")
    with pytest.raises(CallFailed, match="no such file"):
        pod.start(container_id)
    end = ended(heard, container_id)
    assert end.started is False
    assert "no such file" in end.error


def test_of_a_pod_watcher_containerd_tells_what_it_alone_knows(
    containerd: Containerd, pod: Pod, heard: Heard
) -> None:
    settings = ContainerdSettings(sockets=(containerd.socket,))
    with watched(ContainerdWatcher(settings, Roots.discover(), Timeline(), Bookmark())) as beside:
        containerd.run("beacon")
        beside.first(RunStarted, lambda e: e.workload.name == "beacon", LIMIT_S)
        container_id = pod.run("app", "/bin/sleep", "1000", attempt=3)
        pod.stop(container_id)
        assert ended(heard, container_id).code in (137, 143)
        told = beside.first(
            RuntimeAction, lambda e: (e.workload.id, e.action) == (container_id, "delete"), LIMIT_S
        )
        assert told.workload.key == f"cri:{container_id}"
        assert not beside.all(RunEnded, lambda e: e.workload.id == container_id)
        containerd.remove("beacon")
