"""GPUs by NVML: the official bindings above a library of our own, real processes, and every failure."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.nvml import library
from tests.nvml.library import GIB, MIB, gpu

from cgotel.collectors.nvml.collector import NvmlCollector, NvmlConfig
from cgotel.contract import SourceStatus, State, Tick
from cgotel.kernel import tasks
from cgotel.kernel.roots import Roots
from cgotel.model import Reading

SECOND = 10**9
CGROUP = "/system.slice/docker-" + "3f" * 32 + ".scope"


class Machine:
    """A machine with the driver, and a collector that is asked again and again."""

    def __init__(self, root: Path) -> None:
        self.proc = root / "proc"
        self.sys = root / "sys"
        self.mount = root / "cgroup"
        self.log = root / "calls"
        self.state = library.State(root / "state")
        self.release_file = root / "release"
        self.config = {
            "library": str(library.built()),
            "release_file": str(self.release_file),
            "deadline": 20.0,
        }
        self.collector: NvmlCollector | None = None
        self.sweeps = 0
        (self.mount / CGROUP.strip("/")).mkdir(parents=True)
        self.load_driver()

    def load_driver(self) -> None:
        (self.proc / "driver/nvidia").mkdir(parents=True, exist_ok=True)
        line = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build\n"
        (self.proc / "driver/nvidia/version").write_text(line)

    def process(self, pid: int, cgroup: str = CGROUP, began: int = 1000) -> None:
        """A process as /proc shows it."""
        directory = self.proc / str(pid)
        directory.mkdir(exist_ok=True)
        (directory / "cgroup").write_text(f"0::{cgroup}\n")
        fields = ["S", *["0"] * 18, str(began), *["0"] * 30]
        (directory / "stat").write_text(f"{pid} (python3) {' '.join(fields)}\n")

    def end(self, pid: int) -> None:
        for file in (self.proc / str(pid)).iterdir():
            file.unlink()
        (self.proc / str(pid)).rmdir()

    def card(self, address: str, runtime_status: str, control: str = "auto") -> None:
        power = self.sys / "bus/pci/devices" / address / "power"
        power.mkdir(parents=True, exist_ok=True)
        (power.parent / "vendor").write_text("0x10de\n")
        (power.parent / "class").write_text("0x030000\n")
        (power / "runtime_status").write_text(f"{runtime_status}\n")
        (power / "control").write_text(f"{control}\n")

    def start(self, proc: str | None = None, mount: str | None = None, **more: object) -> None:
        roots = Roots(proc or str(self.proc), str(self.sys), mount or str(self.mount))
        self.collector = NvmlCollector(NvmlConfig(**{"deadline": 20.0, **self.config, **more}), roots)
        self.collector.start()
        self.collector._foreign = False  # wherever the test runs

    def sweep(self) -> dict[str, Reading]:
        assert self.collector is not None
        self.sweeps += 1
        readings = self.collector.collect(Tick(self.sweeps * SECOND, self.sweeps * SECOND))
        return {reading.entity.key.partition("@")[0]: reading for reading in readings}

    def sweep_until(self, key: str, sources: str = "", timeout_s: float = 60) -> Reading:
        """Sweep until something is there; what was lost is looked for again after a second or more."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            found = self.sweep().get(key)
            if found is not None and (not sources or found.value(sources) is not None):
                return found
            time.sleep(0.1)
        raise TimeoutError(f"{key} did not come: {self.statuses()}")

    def statuses(self) -> dict[str, SourceStatus]:
        assert self.collector is not None
        return {status.name: status for status in self.collector.sources()}

    def calls(self) -> list[str]:
        return self.log.read_text().split() if self.log.exists() else []


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    made = Machine(tmp_path)
    monkeypatch.setenv("FAKE_NVML_STATE", str(made.state.path))
    monkeypatch.setenv("FAKE_NVML_LOG", str(made.log))
    yield made
    if made.collector is not None:
        made.state.drop("delay.nvmlDeviceGetUtilizationRates")
        made.collector.close()


FULL = {
    "util_gpu": 97,
    "util_mem": 40,
    "util_enc": 3,
    "clock0": 1980,
    "clock1": 1980,
    "clock2": 3201,
    "threshold0": 95,
    "reasons": "0x24",
    "ecc_corrected": 4,
    "ecc_uncorrected": 0,
    "field__83": "ull 987654321",
    "field__185": "u 412345",
    "field__186": "u 500000",
    "field__190": "u 700000",
    "field__82": "u 55",
    "field__74": "ull 2500000000",
    "field__143": "u 2",
    "field__144": "u 1",
    "field__197": "ull 1000",
    "field__198": "ull 2000",
    "field__138": "ull 3",
    "field__139": "err 3",
}


def test_every_figure(machine: Machine) -> None:
    machine.state.set(gpu(0, **FULL), gpus=1)
    machine.start()
    found = machine.sweep()["GPU-0"]
    assert found.entity.attributes == {
        "hw.id": "GPU-0",
        "hw.name": "0000:3b:00.0",
        "hw.model": "NVIDIA H200",
        "hw.vendor": "NVIDIA",
    }
    assert found.metric("hw.gpu.memory.usage") == 10 * GIB
    assert found.metric("hw.gpu.memory.limit") == 100 * GIB
    assert found.metric("hw.gpu.memory.utilization") == 0.1
    assert found.metric("nvidia.gpu.memory.reserved") == GIB
    assert found.metric("hw.gpu.utilization", hw_gpu_task="general") == 0.97
    assert found.metric("hw.gpu.utilization", hw_gpu_task="encoder") == 0.03
    assert found.metric("hw.gpu.utilization", hw_gpu_task="decoder") is None
    assert found.metric("nvidia.gpu.memory.io.utilization") == 0.4
    assert found.metric("hw.energy") == 987654.321
    assert found.metric("hw.power") == 412.345
    assert found.metric("nvidia.gpu.power.limit") == 700
    assert found.metric("hw.temperature", hw_sensor_location="gpu") == 41
    assert found.metric("hw.temperature", hw_sensor_location="memory") == 55
    assert found.metric("hw.temperature.limit") == 95
    assert found.metric("nvidia.gpu.clock.frequency", nvidia_gpu_clock_type="memory") == 3_201_000_000
    assert found.metric("nvidia.gpu.clock.throttled.time") == 2.5
    reason = "nvidia.gpu.clock.status"
    assert found.metric(reason, nvidia_gpu_clock_event_reason="sw_power_cap") == 1
    assert found.metric(reason, nvidia_gpu_clock_event_reason="sw_thermal_slowdown") == 1
    assert found.metric(reason, nvidia_gpu_clock_event_reason="gpu_idle") == 0
    assert found.metric("hw.errors", error_type="corrected") == 4
    assert found.metric("hw.errors", error_type="uncorrected") == 0
    assert found.metric("nvidia.gpu.memory.remapped_row.count") == 2
    assert found.metric("hw.status") == 1
    assert found.metric("hw.gpu.io", network_io_direction="transmit") == 1000
    assert found.metric("nvidia.gpu.nvlink.io") == 3 * 1024
    assert found.metric("nvidia.gpu.status", nvidia_gpu_state="ok") == 1
    assert machine.statuses()["nvml/driver"].state is State.OK


def test_what_a_gpu_does_not_have_has_no_point_and_is_not_asked_again(machine: Machine) -> None:
    machine.state.set(gpu(0), gpus=1)
    machine.start()
    found = machine.sweep()["GPU-0"]
    assert found.metric("hw.power") is None
    assert found.metric("hw.energy") is None
    assert found.metric("hw.gpu.utilization") is None
    first = machine.calls()
    again = machine.sweep()["GPU-0"]
    second = machine.calls()[len(first) :]
    assert "nvmlDeviceGetPowerUsage" in first
    assert "nvmlDeviceGetPowerUsage" not in second
    assert len(second) < 12
    assert second.count("nvmlDeviceGetFieldValues") == 1
    assert again.series is found.series


def test_never_a_call_that_sleeps(machine: Machine) -> None:
    machine.state.set(gpu(0, **FULL), gpus=1)
    machine.start()
    machine.sweep()
    assert "nvmlDeviceGetPcieThroughput" not in machine.calls()


def test_an_old_driver(machine: Machine) -> None:
    """Without batches, without version 2 of memory, without version 3 of the lists of processes."""
    old = {
        f"err.{function}": 13
        for function in (
            "nvmlDeviceGetFieldValues",
            "nvmlDeviceGetMemoryInfo_v2",
            "nvmlDeviceGetTemperatureV",
            "nvmlDeviceGetCurrentClocksEventReasons",
            "nvmlDeviceGetComputeRunningProcesses_v3",
            "nvmlDeviceGetGraphicsRunningProcesses_v3",
            "nvmlDeviceGetMPSComputeRunningProcesses_v3",
        )
    }
    machine.process(77)
    figures = {"power_mw": 250_000, "energy_mj": 5000, "reasons": 1, "power_limit_mw": 300_000}
    machine.state.set(gpu(0, proc=f"C 77 {GIB}", **figures), old, gpus=1)
    machine.start()
    found = machine.sweep()
    assert found["GPU-0"].metric("hw.power") == 250
    assert found["GPU-0"].metric("hw.energy") == 5
    assert found["GPU-0"].metric("hw.temperature") == 41
    assert found["GPU-0"].metric("hw.gpu.memory.usage") == 11 * GIB
    assert found["GPU-0"].metric("nvidia.gpu.memory.reserved") is None
    assert found[CGROUP].metric("nvidia.gpu.cgroup.memory.usage") == GIB


def test_memory_by_container(machine: Machine) -> None:
    for pid in (70, 71, 72):
        machine.process(pid)
    machine.process(80, "/user.slice/session-1.scope")
    processes = [
        f"C 70 {4 * GIB}",
        f"G 70 {4 * GIB}",  # in both lists, and the same memory
        f"C 71 {2 * GIB}",
        f"C 80 {GIB}",
        f"M 99 {GIB}",  # nobody knows it
    ]
    machine.state.set(gpu(0, proc=processes), gpu(1, proc=f"C 70 {3 * GIB}"), gpus=2)
    machine.start()
    found = machine.sweep()
    container = found[CGROUP]
    assert container.entity.kind == "container"
    assert container.entity.attributes["container.id"] == "3f" * 32
    usage = "nvidia.gpu.cgroup.memory.usage"
    assert container.metric(usage, hw_id="GPU-0") == 6 * GIB
    assert container.metric(usage, hw_id="GPU-1") == 3 * GIB
    assert found["GPU-0"].metric("nvidia.gpu.memory.unattributed") == 2 * GIB
    assert found["GPU-0"].metric("cgotel.gpu.process.unmapped") == 1
    assert found["GPU-0"].metric("nvidia.gpu.process.memory.usage") is None


def test_memory_by_process_where_it_is_asked_for(machine: Machine) -> None:
    machine.process(70)
    machine.state.set(gpu(0, proc=[f"C 70 {4 * GIB}", "C 71 NA"]), gpus=1)
    machine.start(processes=True)
    found = machine.sweep()["GPU-0"]
    assert found.metric("nvidia.gpu.process.memory.usage", process_pid=70) == 4 * GIB
    assert found.metric("nvidia.gpu.process.memory.usage", process_pid=71) is None
    assert found.metric("nvidia.gpu.memory.unattributed") is None


def test_a_real_process(machine: Machine) -> None:
    """Its true cgroup, by the kernel's own /proc."""
    roots = Roots.discover({})
    (machine.proc / "x").touch()
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        for name in os.listdir("/proc"):
            if name == str(child.pid):
                (machine.proc / name).symlink_to(f"/proc/{name}")
        machine.state.set(gpu(0, proc=f"C {child.pid} {512 * MIB}"), gpus=1)
        machine.start(mount=roots.cgroup)
        found = machine.sweep()
        path = tasks.cgroup("/proc", child.pid)
    finally:
        child.communicate(b"\n")
    if path is None or roots.cgroup is None:
        pytest.fail("no cgroup v2 here: the suite needs a kernel that has it mounted")
    assert found[path].metric("nvidia.gpu.cgroup.memory.usage") == 512 * MIB


def test_a_process_that_is_gone_and_a_pid_that_is_another(machine: Machine) -> None:
    machine.process(70)
    machine.state.set(gpu(0, proc=f"C 70 {GIB}"), gpus=1)
    machine.start()
    assert CGROUP in machine.sweep()
    machine.end(70)
    assert machine.sweep()[CGROUP].metric("nvidia.gpu.cgroup.memory.usage") == GIB
    other = "/user.slice/session-1.scope"
    (machine.mount / other.strip("/")).mkdir(parents=True)
    machine.process(70, other, began=2000)
    found = machine.sweep()
    assert CGROUP not in found
    assert other in found


def test_mig_instances_with_memory_and_processes_of_their_own(machine: Machine) -> None:
    machine.process(70)
    instances = {}
    for number, instance in enumerate((1, 2, 2)):  # two compute instances share the last one
        instances |= {
            f"0.m{number * 2}.uuid": f"MIG-{number}",
            f"0.m{number * 2}.gi": instance,
            f"0.m{number * 2}.mem_total": 20 * GIB,
            f"0.m{number * 2}.mem_used": instance * GIB,
        }
    parent = gpu(0, mig=1, mig_max=7, proc=[f"C 70 {GIB // 2} 1 0"])
    machine.state.set(parent, instances, gpus=1)
    machine.start()
    found = machine.sweep()
    assert found.keys() == {"GPU-0", "MIG-0", "MIG-1", CGROUP}
    assert found["MIG-0"].entity.attributes["hw.parent"] == "GPU-0"
    assert found["MIG-1"].metric("hw.gpu.memory.usage") == 2 * GIB
    assert found["MIG-0"].metric("nvidia.gpu.memory.unattributed") == GIB // 2
    usage = found[CGROUP].points
    assert [(dict(series.attributes), value) for series, value in usage] == [({"hw.id": "MIG-0"}, GIB // 2)]


def test_the_lists_of_a_535_driver_are_not_believed(machine: Machine) -> None:
    machine.process(70)
    machine.state.set(gpu(0, proc=f"C 70 {GIB}"), gpus=1, driver="535.54.03")
    machine.start()
    found = machine.sweep()
    assert found.keys() == {"GPU-0"}
    assert found["GPU-0"].metric("nvidia.gpu.memory.unattributed") is None


@pytest.mark.parametrize("code", [2, 3, 4, 6, 7, 16, 19, 21, 999])
@pytest.mark.parametrize(
    "function", ["nvmlDeviceGetUtilizationRates", "nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetFieldValues"]
)
def test_a_call_that_fails_costs_its_own_points(machine: Machine, code: int, function: str) -> None:
    machine.state.set(gpu(0, **FULL), gpu(1, **FULL), gpus=2)
    machine.state.set({f"0.err.{function}": code})
    machine.start()
    found = machine.sweep()
    assert found["GPU-1"].metric("hw.power") == 412.345
    assert found["GPU-0"].metric("hw.temperature", hw_sensor_location="gpu") == 41
    if function == "nvmlDeviceGetUtilizationRates":
        assert found["GPU-0"].metric("hw.gpu.utilization", hw_gpu_task="general") is None
    state = "reset_required" if code == 16 else "ok"
    assert found["GPU-0"].metric("nvidia.gpu.status", nvidia_gpu_state=state) == 1


def test_a_lost_gpu_stops_no_other_and_comes_back(machine: Machine) -> None:
    machine.state.set(gpu(0), gpu(1), gpus=2)
    machine.start()
    machine.sweep()
    machine.state.set({"0.lost": 1})
    found = machine.sweep()
    assert found["GPU-0"].metric("nvidia.gpu.status", nvidia_gpu_state="lost") == 1
    assert found["GPU-0"].metric("hw.gpu.memory.usage") is None
    assert found["GPU-1"].metric("hw.gpu.memory.usage") == 10 * GIB
    assert machine.statuses()["nvml/GPU-0"].state is State.FAILED
    machine.state.drop("0.lost")
    assert machine.sweep_until("GPU-0", "memory_used_bytes").metric("hw.gpu.memory.usage") == 10 * GIB


def test_a_driver_of_another_version_than_the_library(machine: Machine) -> None:
    machine.state.set(gpu(0), gpus=1, init=18)
    machine.start()
    assert machine.sweep() == {}
    status = machine.statuses()["nvml/driver"]
    assert status.state is State.FAILED
    assert "upgraded" in status.remedy
    machine.state.drop("init")
    machine.sweep_until("GPU-0")


def test_a_driver_that_is_not_there_and_comes_later(machine: Machine) -> None:
    (machine.proc / "driver/nvidia/version").unlink()
    machine.state.set(gpu(0), gpus=1)
    machine.start()
    assert machine.sweep() == {}
    assert machine.statuses()["nvml/driver"].state is State.ABSENT
    assert machine.calls() == []
    machine.load_driver()
    assert "GPU-0" in machine.sweep()
    (machine.proc / "driver/nvidia/version").unlink()
    assert machine.sweep() == {}


def test_nothing_heavy_is_loaded_where_there_is_no_driver() -> None:
    code = """if True:
        import sys
        from cgotel import testing
        from cgotel.collectors.nvml.collector import NvmlCollector, NvmlConfig
        from cgotel.kernel.roots import Roots
        testing.sweep(NvmlCollector(NvmlConfig(), Roots("/nowhere", "/nowhere", None)))
        assert "pynvml" not in sys.modules
    """
    subprocess.run([sys.executable, "-c", code], check=True)


def test_no_gpu_at_all_is_a_failure_and_no_zero(machine: Machine) -> None:
    machine.state.set(gpus=0)
    machine.start()
    assert machine.sweep() == {}
    assert machine.statuses()["nvml/driver"].state is State.FAILED


def test_a_call_that_hangs_costs_this_sweep_only(machine: Machine) -> None:
    machine.state.set(gpu(0, **FULL), gpus=1)
    machine.start(deadline=0.3)
    machine.sweep_until("GPU-0")
    machine.state.set({"delay.nvmlDeviceGetUtilizationRates": 3_000_000})
    before = time.monotonic()
    assert machine.sweep() == {}
    assert machine.sweep() == {}
    assert time.monotonic() - before < 3
    assert machine.statuses()["nvml/driver"].reason == "the driver did not answer in time"
    machine.state.drop("delay.nvmlDeviceGetUtilizationRates")
    machine.sweep_until("GPU-0")


def test_a_sleeping_gpu_is_not_woken(machine: Machine) -> None:
    machine.card("0000:3b:00.0", "suspended")
    machine.state.set(gpu(0), gpus=1)
    machine.start()
    assert machine.sweep() == {}
    assert machine.calls() == []
    assert machine.statuses()["nvml/driver"].state is State.OFF
    machine.card("0000:3b:00.0", "active")
    assert machine.sweep()["GPU-0"].metric("hw.gpu.memory.usage") == 10 * GIB
    assert machine.calls()[-1] == "nvmlShutdown"  # or it could not fall asleep again
    machine.card("0000:3b:00.0", "suspended")
    found = machine.sweep()["GPU-0"]
    assert found.metric("nvidia.gpu.status", nvidia_gpu_state="suspended") == 1
    assert found.metric("hw.gpu.memory.usage") is None


def test_the_gpus_are_let_go_of_on_request(machine: Machine) -> None:
    machine.state.set(gpu(0), gpus=1)
    machine.start()
    machine.sweep()
    machine.release_file.touch()
    deadline = time.monotonic() + 30
    while machine.calls()[-1] != "nvmlShutdown" and time.monotonic() < deadline:
        time.sleep(0.05)  # without any sweep
    assert machine.calls()[-1] == "nvmlShutdown"
    assert machine.sweep() == {}
    assert machine.statuses()["nvml/driver"].state is State.OFF
    machine.release_file.unlink()
    assert "GPU-0" in machine.sweep()


def test_counters_that_step_back_began_anew(machine: Machine) -> None:
    machine.state.set(gpu(0, field__83="ull 5000"), gpus=1)
    machine.start()
    assert machine.sweep()["GPU-0"].entity.began_ns is None
    machine.state.set({"0.field.83": "ull 10"})
    assert machine.sweep()["GPU-0"].entity.began_ns == 2 * SECOND
    assert machine.sweep()["GPU-0"].entity.began_ns == 2 * SECOND


def test_many_gpus_and_processes_that_come_and_go(machine: Machine) -> None:
    for pid in range(1000, 1250):
        machine.process(pid)
    machine.start()
    fds = None
    for turn in range(40):
        first = 1000 + turn
        processes = [f"C {pid} {100 * MIB}" for pid in range(first, first + 200)]
        machine.state.set(*[gpu(n, mem_used=25 * GIB, proc=processes) for n in range(16)], gpus=16)
        found = machine.sweep()
        assert len(found) == 17
        assert found["GPU-15"].metric("nvidia.gpu.memory.unattributed") == 25 * GIB - 20_000 * MIB
        assert found[CGROUP].metric("nvidia.gpu.cgroup.memory.usage", hw_id="GPU-7") == 20_000 * MIB
        fds = fds or len(os.listdir("/proc/self/fd"))
    assert len(os.listdir("/proc/self/fd")) <= fds
    assert len(machine.collector._owners._known) == 200


def test_a_process_ends_at_once_while_a_call_hangs(machine: Machine) -> None:
    hang_s = 60
    machine.state.set(gpu(0), {"gpus": 1, "delay.nvmlInitWithFlags": hang_s * 1_000_000})
    code = f"""if True:
        from cgotel.collectors.nvml.collector import NvmlCollector, NvmlConfig
        from cgotel.contract import Tick
        from cgotel.kernel.roots import Roots
        config = NvmlConfig(library={str(library.built())!r}, deadline=0.1)
        collector = NvmlCollector(config, Roots({str(machine.proc)!r}, "/nowhere", None))
        collector.start()
        assert list(collector.collect(Tick(0, 0))) == []
        collector.close()
    """
    began = time.monotonic()
    subprocess.run([sys.executable, "-c", code], check=True)
    assert time.monotonic() - began < hang_s
