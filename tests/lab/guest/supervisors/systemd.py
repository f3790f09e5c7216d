"""systemd: transient services."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.lab.guest.supervisors import images
from tests.lab.guest.supervisors.model import End, Program, Supervisor, Workload, await_that

_FOLDER = Path("/run/cgotel-lab-units")
_STATE = ("Result", "ExecMainCode", "ExecMainStatus", "NRestarts", "ActiveState", "InvocationID")
_EXITED = 1  # ExecMainCode, as waitid(2) has it: CLD_EXITED, CLD_KILLED, CLD_DUMPED


class Systemd(Supervisor):
    name = "systemd"
    executes = False

    def __init__(self) -> None:
        self._waiting: dict[str, subprocess.Popen[bytes]] = {}

    def begin(self) -> None:
        _FOLDER.mkdir(exist_ok=True)
        images.write_faulting(_FOLDER / "fault")

    def run(self, name: str, program: Program) -> Workload:
        unit = f"{name}.service"
        gate = _FOLDER / f"{name}.gate"
        os.mkfifo(gate)
        script = _FOLDER / f"{name}.sh"
        script.write_text(program.script)
        if program.command:
            command = _unit_file(unit, program.command)
        else:
            command = ["systemd-run", "--quiet", "--wait", f"--unit={unit}", f"--setenv=GATE={gate}"]
            command += [f"--setenv=PATH={_FOLDER}:/usr/bin:/bin"]
            command += [f"--property={line}" for line in _properties(program)]
            command += ["/bin/busybox", "sh", str(script)]
        # --wait keeps the unit loaded until it is over, and ends then.
        self._waiting[name] = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        waiting = self._waiting[name]
        await_that(f"{unit} runs", lambda: _show(unit, "MainPID") != "0" or waiting.poll() is not None)
        pid = int(_show(unit, "MainPID"))
        if not pid:
            return Workload(self.name, name, unit, refusal=_show(unit, "Result"))
        return Workload(self.name, name, unit, pid, _show(unit, "ControlGroup"))

    def gate(self, workload: Workload) -> Path:
        return _FOLDER / f"{workload.name}.gate"

    def stop(self, workload: Workload, grace_s: int) -> None:
        """The grace is the unit's own, ``TimeoutStopSec`` of its program's properties."""
        _systemctl("stop", workload.id)

    def kill(self, workload: Workload) -> None:
        _systemctl("kill", "--signal=KILL", workload.id)

    def execute(self, workload: Workload, script: str) -> None:
        raise NotImplementedError("systemd runs nothing inside a unit")

    def wait(self, workload: Workload) -> End:
        await_that(f"{workload.name} ends", lambda: self._waiting[workload.name].poll() is not None)
        told = _systemctl("show", workload.id, *(f"--property={name}" for name in _STATE))
        state = dict(line.split("=", 1) for line in told.splitlines())
        status = int(state["ExecMainStatus"])
        killed = int(state["ExecMainCode"]) > _EXITED
        return End(128 + status if killed else status, state)

    def remove(self, name: str) -> None:
        unit = f"{name}.service"
        waiting = self._waiting.pop(name)
        if waiting.poll() is None:
            _systemctl("kill", "--signal=KILL", unit)
            _systemctl("stop", unit)
        waiting.wait()
        subprocess.run(["systemctl", "reset-failed", unit], check=False, stderr=subprocess.DEVNULL)
        Path(_FOLDER, f"{name}.gate").unlink()


def _properties(program: Program) -> list[str]:
    lines = list(program.properties)
    if program.memory_mib:
        lines.append(f"MemoryMax={program.memory_mib}M")
        if not program.swap:
            lines.append("MemorySwapMax=0")
    if program.pids:
        lines.append(f"TasksMax={program.pids}")
    if program.slice:
        lines.append(f"Slice={program.slice}")
    if program.retries is not None:
        starts = program.retries + 1
        lines += ["Restart=on-failure", "RestartSec=100ms"]
        lines += [f"StartLimitBurst={starts}", "StartLimitIntervalSec=1h"]
    return lines


def _unit_file(unit: str, command: tuple[str, ...]) -> list[str]:
    """For commands that systemd-run would not try to start, because it sees itself that it is in vain."""
    lines = ["[Service]", "Type=exec", f"ExecStart={' '.join(command)}", ""]
    Path("/run/systemd/system", unit).write_text("\n".join(lines))
    return ["systemctl", "start", "--wait", unit]


def _show(unit: str, name: str) -> str:
    return _systemctl("show", "--value", f"--property={name}", unit).strip()


def _systemctl(*words: str) -> str:
    return subprocess.run(["systemctl", *words], check=True, stdout=subprocess.PIPE, text=True).stdout
