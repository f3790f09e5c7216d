"""`cgotel snapshot` on a host with a GPU: whose memory is it, beside the container's own figures."""

import json

from tests.nvml import library
from tests.nvml.library import GIB, State, gpu
from tests.unit.cli.host_tree import CONTAINER


def test_gpu_memory_stands_with_the_container(cgotel, tree, tmp_path):
    proc = tree.folder / "proc"
    (proc / "driver/nvidia").mkdir(parents=True)
    (proc / "driver/nvidia/version").write_text("NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06\n")
    (proc / "4242").mkdir()
    (proc / "4242/cgroup").write_text(f"0::{CONTAINER}\n")
    (proc / "4242/stat").write_text("4242 (python3) S" + " 0" * 18 + " 1000" + " 0" * 30 + "\n")
    State(tmp_path / "state").set(gpu(0, proc=f"C 4242 {7 * GIB}"), gpus=1)
    config = tmp_path / "cgotel.toml"
    config.write_text(
        f'[restarts]\nenabled = false\n[collectors.nvml]\nlibrary = "{library.built()}"\ndeadline = 30\n'
    )
    environment = {
        **tree.environment,
        "CGOTEL_CONFIG": str(config),
        "FAKE_NVML_STATE": str(tmp_path / "state"),
    }
    done = cgotel("snapshot", "--format", "json", env=environment)
    assert done.returncode == 0, done.stderr
    entities = json.loads(done.stdout)["entities"]
    [container] = [e for e in entities if e["attributes"].get("process.linux.cgroup") == f"0::{CONTAINER}"]
    values = {metric["name"]: metric for metric in container["metrics"]}
    held = values["nvidia.gpu.cgroup.memory.usage"]
    assert (held["value"], held["attributes"]) == (7 * GIB, {"hw.id": "GPU-0"})
    assert values["container.memory.usage"]["value"] == GIB
    [device] = [e for e in entities if e["kind"] == "gpu"]
    assert device["attributes"]["hw.model"] == "NVIDIA H200"
