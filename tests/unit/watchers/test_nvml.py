"""What the GPU driver tells, through the official bindings above a library of our own."""

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.nvml import library
from tests.nvml.library import GIB, gpu

from cgotel.clock import Timeline
from cgotel.contract import Bookmark, State, Stop, Unavailable
from cgotel.evidence import Gap, GpuMemory, GpuState, GpuXid
from cgotel.kernel.roots import Roots
from cgotel.testing import Heard, watched
from cgotel.watchers.nvml import NvmlWatcher, NvmlWatcherConfig

CGROUP = "/system.slice/docker-" + "3f" * 32 + ".scope"
OTHER = "/user.slice/session-1.scope"
EVENTS = {"event_types": 0x1A}
TIMELINE = Timeline()


class Machine:
    """A machine with the driver, and a watcher of it."""

    def __init__(self, root: Path) -> None:
        self.roots = Roots(str(root / "proc"), str(root / "sys"), None)
        self.state = library.State(root / "state")
        self.release_file = root / "release"
        self.log = root / "calls"
        driver = root / "proc/driver/nvidia"
        driver.mkdir(parents=True)
        (driver / "version").write_text("NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Tue\n")

    def process(self, pid: int, cgroup: str) -> None:
        (directory := Path(self.roots.proc, str(pid))).mkdir()
        (directory / "cgroup").write_text(f"0::{cgroup}\n")

    def watcher(self) -> NvmlWatcher:
        config = NvmlWatcherConfig(
            interval=0.1, library=str(library.built()), release_file=str(self.release_file)
        )
        return NvmlWatcher(config, self.roots, TIMELINE, Bookmark())

    def ready(self, heard: Heard) -> None:
        """Wait until it looks: events from before that are not told."""
        heard.first(Gap)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    made = Machine(tmp_path)
    monkeypatch.setenv("FAKE_NVML_STATE", str(made.state.path))
    monkeypatch.setenv("FAKE_NVML_LOG", str(made.log))
    return made


def test_an_xid_with_its_gpu_by_the_name_of_the_kernel_log(machine: Machine) -> None:
    machine.state.set(gpu(0, **EVENTS), gpu(1, **EVENTS), gpus=2)
    machine.state.add("event=0 8 13")  # nobody watched
    with watched(machine.watcher()) as heard:
        machine.ready(heard)
        machine.state.add("event=1 8 79")
        xid = heard.first(GpuXid)
    assert (xid.xid, xid.device, xid.pid, xid.source) == (79, "0000:3c:00", None, "nvml")
    assert len(heard.all(GpuXid)) == 1


def test_a_storm_of_xids_is_counted_exactly(machine: Machine) -> None:
    machine.state.set(gpu(0, **EVENTS), gpus=1)
    with watched(machine.watcher()) as heard:
        machine.ready(heard)
        machine.state.set(event=[f"0 8 {number}" for number in range(1000)])
        heard.first(GpuXid, lambda e: e.xid == 999, timeout_s=60)
    assert [e.xid for e in heard.all(GpuXid)] == list(range(1000))


def test_a_gpu_is_lost_once(machine: Machine) -> None:
    machine.state.set(gpu(0, **EVENTS), gpu(1, **EVENTS), gpus=2)
    with watched(machine.watcher()) as heard:
        heard.first(GpuMemory, lambda e: e.device == "0000:3b:00")
        machine.state.set({"0.lost": 1})
        lost = heard.first(GpuState)
        machine.state.set({"1.mem_used": 95 * GIB})
        heard.first(GpuMemory, lambda e: e.device == "0000:3c:00" and e.used == 95 * GIB)
    assert (lost.device, lost.state) == ("0000:3b:00", "lost")
    assert len(heard.all(GpuState)) == 1


def test_a_lost_gpu_that_comes_back_is_watched_again(machine: Machine) -> None:
    machine.state.set(gpu(0, **EVENTS), gpu(1, **EVENTS), gpus=2)
    with watched(machine.watcher()) as heard:
        heard.first(GpuMemory, lambda e: e.device == "0000:3b:00")
        machine.state.set({"0.lost": 1})
        heard.first(GpuState)
        machine.state.drop("0.lost")
        machine.state.set({"0.mem_used": 95 * GIB})
        heard.first(GpuMemory, lambda e: e.device == "0000:3b:00" and e.used == 95 * GIB, timeout_s=60)
        machine.state.add("event=0 8 31")
        assert heard.first(GpuXid).device == "0000:3b:00"


@pytest.mark.parametrize(
    ("cause", "state"),
    [
        ({"event": "0 2 0"}, "ecc"),
        ({"0.err.nvmlDeviceGetMemoryInfo_v2": 16}, "reset_required"),
    ],
)
def test_a_gpu_that_fails(machine: Machine, cause: dict[str, object], state: str) -> None:
    machine.state.set(gpu(0, **EVENTS), gpus=1)
    with watched(machine.watcher()) as heard:
        heard.first(GpuMemory)
        machine.state.set(cause)
        assert heard.first(GpuState).state == state


def test_memory_by_whom_and_beside_whom(machine: Machine) -> None:
    machine.process(70, CGROUP)
    machine.process(80, OTHER)
    processes = [f"C 70 {60 * GIB}", f"C 80 {30 * GIB}"]
    machine.state.set(gpu(0, mem_used=95 * GIB, proc=processes), gpu(1), gpus=2)
    with watched(machine.watcher()) as heard:
        mine = heard.first(GpuMemory, lambda e: e.cgroup == CGROUP)
        nobodys = heard.first(GpuMemory, lambda e: e.device == "0000:3c:00")
    assert (mine.total, mine.used) == (100 * GIB, 95 * GIB)
    assert (mine.own, mine.largest_other) == (60 * GIB, 30 * GIB)
    assert (nobodys.cgroup, nobodys.own, nobodys.largest_other) == (None, None, None)


def test_what_has_not_changed_is_not_told_again(machine: Machine) -> None:
    machine.state.set(gpu(0), gpus=1)
    with watched(machine.watcher()) as heard:
        heard.first(GpuMemory)
        machine.state.set({"0.mem_used": 10 * GIB + 1000})
        before = calls(machine)
        eventually(lambda: calls(machine) > before + 20)
        machine.state.set({"0.mem_used": 95 * GIB})
        heard.first(GpuMemory, lambda e: e.used == 95 * GIB)
    assert len(heard.all(GpuMemory)) == 2


def test_a_driver_that_is_lost_ends_the_watch(machine: Machine) -> None:
    machine.state.set(gpu(0, **EVENTS), gpus=1)
    ending = ended_by(machine.watcher(), lambda: machine.state.set({"err.nvmlEventSetWait_v2": 18}))
    assert ending.status.state is State.FAILED


def test_it_lets_go_on_request(machine: Machine) -> None:
    machine.state.set(gpu(0, **EVENTS), gpus=1)
    watcher = machine.watcher()
    assert ended_by(watcher, machine.release_file.touch).status.state is State.OFF
    assert machine.log.read_text().split()[-1] == "nvmlShutdown"
    with pytest.raises(Unavailable):
        watcher.start()
    machine.release_file.unlink()
    watcher.start()
    watcher.close()


@pytest.mark.parametrize("state", [{"init": 18}, {"gpus": 0}, {"0.lost": 1}])
def test_it_cannot_serve(machine: Machine, state: dict[str, object]) -> None:
    machine.state.set(gpu(0), {"gpus": 1}, state)
    with pytest.raises(Unavailable) as raised:
        machine.watcher().start()
    assert raised.value.status.state is State.FAILED


def test_without_a_driver_nothing_is_asked(machine: Machine) -> None:
    Path(machine.roots.proc, "driver/nvidia/version").unlink()
    with pytest.raises(Unavailable) as raised:
        machine.watcher().start()
    assert raised.value.status.state is State.ABSENT
    assert not machine.log.exists()


def calls(machine: Machine, function: str = "nvmlDeviceGetMemoryInfo_v2") -> int:
    return machine.log.read_text().split().count(function)


def ended_by(watcher: NvmlWatcher, cause: Callable[[], None], timeout_s: float = 60) -> Unavailable:
    """What a watch ends with that sees the cause."""
    raised: list[Unavailable] = []

    def watch() -> None:
        try:
            watcher.watch(heard.report, Stop())
        except Unavailable as unavailable:
            raised.append(unavailable)

    heard = Heard()
    watcher.start()
    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    heard.first(GpuMemory)
    cause()
    thread.join(timeout_s)
    watcher.close()
    assert raised, "the watch did not end"
    return raised[0]


def eventually(so: Callable[[], object], timeout_s: float = 60) -> None:
    deadline = time.monotonic() + timeout_s
    while not so():
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.02)
