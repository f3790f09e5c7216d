"""containerd by itself, as its own client ctr uses it: a shim, runc; cgroups below ``/default``."""

from __future__ import annotations

import json
import subprocess
import threading
from pathlib import Path

from tests.lab.guest.supervisors import images
from tests.lab.guest.supervisors.model import (
    GATE,
    End,
    Program,
    Supervisor,
    Workload,
    await_that,
    cgroup_of,
)

_FOLDER = Path("/run/cgotel-lab")


class Containerd(Supervisor):
    name = "containerd"

    def __init__(self) -> None:
        self._clients: dict[str, subprocess.Popen[bytes]] = {}
        self._events: list[tuple[str, str]] = []

    def begin(self) -> None:
        _FOLDER.mkdir(exist_ok=True)
        subprocess.run(["systemctl", "start", "containerd.service"], check=True)
        self._listen()
        for name in images.NAMES:
            subprocess.run(
                ["ctr", "image", "import", "-"],
                input=images.archive(name),
                check=True,
                stdout=subprocess.DEVNULL,
            )

    def run(self, name: str, program: Program) -> Workload:
        pid_file = _FOLDER / f"{name}.pid"
        pid_file.unlink(missing_ok=True)
        errors = _FOLDER / f"{name}.errors"
        with errors.open("w") as stderr:
            client = subprocess.Popen(
                [
                    "ctr",
                    "run",
                    "--null-io",
                    "--net-host",
                    "--cwd=/",
                    f"--env=GATE={GATE}",
                    f"--pid-file={pid_file}",
                ]
                + ([f"--memory-limit={program.memory_mib << 20}"] if program.memory_mib else [])
                + (["--runc-systemd-cgroup", f"--cgroup={program.slice}:ctr:{name}"] if program.slice else [])
                + [_image(program.image), name, *(program.command or ("sh", "-c", program.script))],
                stderr=stderr,
            )
        self._clients[name] = client
        await_that(f"ctr has started {name}", lambda: pid_file.exists() or client.poll() is not None)
        await_that(f"{name} runs", lambda: (name, "start") in self._events or client.poll() is not None)
        if (name, "start") not in self._events and client.wait():
            return Workload(self.name, name, name, refusal=errors.read_text().strip())
        pid = int(pid_file.read_text())
        workload = Workload(self.name, name, name, pid, cgroup_of(pid))
        self._limit(workload, program)
        return workload

    def _limit(self, workload: Workload, program: Program) -> None:
        """What ctr has no option for."""
        if program.memory_mib and not program.swap:
            workload.file("memory.swap.max").write_text("0")
        if program.pids:
            workload.file("pids.max").write_text(f"{program.pids}")

    def stop(self, workload: Workload, grace_s: int) -> None:
        _ctr("task", "kill", "--signal=SIGTERM", workload.id)
        try:
            self._clients[workload.name].wait(grace_s)
        except subprocess.TimeoutExpired:
            self.kill(workload)

    def kill(self, workload: Workload) -> None:
        _ctr("task", "kill", "--signal=SIGKILL", workload.id)

    def execute(self, workload: Workload, script: str) -> None:
        command = ["ctr", "task", "exec", "--exec-id=inside", workload.id, "sh", "-c", script]
        subprocess.run(command, check=False)  # it may end with the container itself

    def wait(self, workload: Workload) -> End:
        if workload.refusal:
            return End(None, {}, self._said(workload))
        client = self._clients[workload.name]
        await_that(f"{workload.name} ends", lambda: client.poll() is not None)
        await_that("its exit is told", lambda: any(e.startswith("exit") for e in self._said(workload)))
        return End(client.returncode, {}, self._said(workload))

    def remove(self, name: str) -> None:
        client = self._clients.pop(name)
        if client.poll() is None:
            _ctr("task", "kill", "--signal=SIGKILL", name)
        client.wait()
        _ctr("container", "rm", name)

    def _said(self, workload: Workload) -> tuple[str, ...]:
        return tuple(word for name, word in self._events if name == workload.id)

    def _listen(self) -> None:
        self._stream = subprocess.Popen(["ctr", "events"], stdout=subprocess.PIPE, text=True)
        self._listener = threading.Thread(target=self._take)
        self._listener.start()
        # It listens once it tells of something that was done to have it told.
        mark = ("", "update")
        await_that(
            "ctr listens", lambda: _ctr("namespace", "label", "default", "lab=1") or mark in self._events
        )

    def close(self) -> None:
        with self._stream:
            self._stream.terminate()
            self._listener.join()

    def _take(self) -> None:
        assert self._stream.stdout
        for line in self._stream.stdout:
            head, brace, document = line.partition("{")
            kind = head.split()[-1].rpartition("/")[2]
            told = json.loads(brace + document)
            code = f" {told.get('exit_status', 0)}" if kind == "exit" else ""
            self._events.append((told.get("container_id", ""), kind + code))


def _image(name: str) -> str:
    return f"{images.REGISTRY}{name}:latest"


def _ctr(*words: str) -> str:
    return subprocess.run(["ctr", *words], check=True, stdout=subprocess.PIPE, text=True).stdout
