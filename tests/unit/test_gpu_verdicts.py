"""Verdicts on GPUs: the driver's own figures and events, a real process that ends, and its last words."""

import queue
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.nvml import library
from tests.nvml.library import GIB, State, gpu

from cgotel.clock import Timeline
from cgotel.contract import Bookmark, Report, Roots, Stop, Watcher, WatcherSettings
from cgotel.evidence import Evidence, LastWords, ProcessExit, RunEnded, RunStarted, Workload
from cgotel.inquiry import Inquiry
from cgotel.model import Event
from cgotel.restarts.rules import RULES
from cgotel.store import Database, Incidents
from cgotel.watchers.nvml import NvmlWatcher, NvmlWatcherConfig

TIMELINE = Timeline()
CONTAINER = "3f" * 32
CGROUP = f"/system.slice/docker-{CONTAINER}.scope"


class Runtime(Watcher):
    """Tells what a test makes happen."""

    name = "docker"

    def __init__(self) -> None:
        super().__init__(WatcherSettings(), Roots(), TIMELINE, Bookmark())
        self.said: queue.Queue[Evidence] = queue.Queue()

    def watch(self, report: Report, stop: Stop) -> None:
        while not stop.wait(0.01):
            while not self.said.empty():
                report(self.said.get())


class Machine:
    """A machine with one GPU, and everything that judges an end on it."""

    def __init__(self, root: Path, inquiry: Inquiry, state: State, runtime: Runtime) -> None:
        self.root = root
        self.inquiry = inquiry
        self.state = state
        self.runtime = runtime

    def ends(self, words: str, meaning: str) -> None:
        """A container's real process fails with these last words."""
        child = subprocess.Popen([sys.executable, "-c", "exit(1)"])
        began = TIMELINE.now()
        workload = Workload(runtime="docker", id=CONTAINER, name="model", cgroup=CGROUP, pid=child.pid)
        code = child.wait()
        now = TIMELINE.now()
        for piece in (
            RunStarted(source="docker", time_ns=began, workload=workload),
            ProcessExit(source="processes", time_ns=now, cgroup=CGROUP, pid=child.pid, code=code),
            LastWords(source="docker", time_ns=now, workload=workload, pattern=words, meaning=meaning),
            RunEnded(source="docker", time_ns=now, workload=workload, code=code),
        ):
            self.runtime.said.put(piece)


@contextmanager
def judging(root: Path, told: queue.Queue[Event]) -> Iterator[Machine]:
    state = State(root / "state")
    driver = root / "proc/driver/nvidia"
    driver.mkdir(parents=True)
    (driver / "version").write_text("NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06\n")
    (root / "proc/70").mkdir()
    (root / "proc/70/cgroup").write_text(f"0::{CGROUP}\n")
    state.set(gpu(0, event_types=8, mem_used=99 * GIB, proc=f"C 70 {98 * GIB}"), gpus=1)
    config = NvmlWatcherConfig(interval=0.1, library=str(library.built()), release_file="")
    nvml = NvmlWatcher(config, Roots(str(root / "proc"), str(root / "sys"), None), TIMELINE, Bookmark())
    runtime = Runtime()
    inquiry = Inquiry([runtime, nvml], RULES, TIMELINE, Incidents(Database(None)), told.put, settle_s=1.0)
    inquiry.start()
    try:
        yield Machine(root, inquiry, state, runtime)
    finally:
        inquiry.close()


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> queue.Queue[Event]:
    monkeypatch.setenv("FAKE_NVML_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("FAKE_NVML_LOG", str(tmp_path / "calls"))
    return queue.Queue()


def looked_at(root: Path) -> None:
    """Wait until the watcher has looked at memory twice: the first look is then told."""
    for _ in range(600):
        calls = root / "calls"
        if calls.exists() and calls.read_text().count("nvmlDeviceGetMemoryInfo_v2") > 1:
            return
        Stop().wait(0.1)
    raise TimeoutError("the watcher did not look at the GPU")


def judged(told: queue.Queue[Event]) -> Event:
    while (event := told.get(timeout=60)).name != "cgotel.container.exit":
        pass
    return event


def test_full_by_its_own_words_and_by_the_gpus(tmp_path: Path, told: queue.Queue[Event]) -> None:
    with judging(tmp_path, told) as machine:
        looked_at(tmp_path)
        machine.ends("cuda_oom", "gpu_memory")
        event = judged(told)
    assert event.attributes["cgotel.restart.reason"] == "gpu_oom"
    assert event.attributes["cgotel.restart.sureness"] == "confirmed"
    assert "the GPU was full" in event.body


def test_full_by_its_own_words_alone(tmp_path: Path, told: queue.Queue[Event]) -> None:
    with judging(tmp_path, told) as machine:
        machine.state.set({"0.mem_used": 1 * GIB, "0.proc": f"C 70 {GIB // 2}"})
        looked_at(tmp_path)
        Stop().wait(1)
        machine.ends("cuda_oom", "gpu_memory")
        event = judged(told)
    assert event.attributes["cgotel.restart.sureness"] != "confirmed"


def test_a_gpu_that_fell_off_the_bus(tmp_path: Path, told: queue.Queue[Event]) -> None:
    with judging(tmp_path, told) as machine:
        looked_at(tmp_path)
        machine.state.add("event=0 8 79")
        assert told.get(timeout=60).name == "cgotel.gpu.xid"
        machine.ends("nvrm", "gpu_fault")
        event = judged(told)
    assert event.attributes["cgotel.restart.reason"] == "gpu_fault"
