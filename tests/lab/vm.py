"""One virtual machine: QEMU in software emulation, a time limit, a port on which the guest reports."""

from __future__ import annotations

import shlex
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Generator, Iterable
from contextlib import ExitStack
from pathlib import Path

from tests.lab import cache, kernels, project, rootfs
from tests.lab.host import LabError, run, tool
from tests.lab.kernels import Kernel

LIMIT_S = 1800
CONSOLE_LINES = 60

# A panic ends QEMU at once (panic=-1 reboots, -no-reboot makes that an exit), so no wait is in vain.
# Mitigations protect nobody here and cost the emulation a tenth of its time.
_APPEND = (
    "console=ttyS0 quiet psi=1 oops=panic panic=-1 apparmor=0 mitigations=off "
    "root=/dev/nvme0n1 rootfstype=ext4 rw systemd.mask=timers.target"
)
_RUN_TESTS = "systemd.unit=lab.service"

# NVMe and ext4 are built into both kernels, so the root needs no initramfs.
_MACHINE = shlex.split("""
    -accel tcg,thread=multi -cpu max -smp 2 -m 2G
    -object memory-backend-ram,id=node0,size=1G -numa node,nodeid=0,cpus=0,memdev=node0
    -object memory-backend-ram,id=node1,size=1G -numa node,nodeid=1,cpus=1,memdev=node1
    -nodefaults -display none -no-reboot
    -device nvme,drive=root,serial=root
    -device virtio-blk-pci,drive=project,serial=project
    -device virtio-blk-pci,drive=swap,serial=swap
    -device virtio-blk-pci,drive=io,serial=io
""")


class LostGuest(LabError):  # noqa: N818 - what happened to it, not what is wrong with it
    """The guest ended, or its time was up, before it had said all that it was asked for."""


class Guest:
    """A booted guest that runs the selected tests and powers itself off; closed, it is gone."""

    def __init__(self, kernel: Kernel, selection: Iterable[str], limit_s: int = LIMIT_S) -> None:
        self.kernel = kernel
        self._limit_s = limit_s
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="run.", dir=cache.folder())))
            self._console = folder / "console"
            command = _command(kernel, selection, folder, _RUN_TESTS)
            self._port, theirs = socket.socketpair()
            stack.callback(self._port.close)
            with theirs, open(self._console, "wb") as console:
                self._qemu = subprocess.Popen(
                    [*_limited(limit_s), *command, *_ports(theirs.fileno(), self._console)],
                    stdin=subprocess.DEVNULL,
                    stdout=console,
                    stderr=console,
                    pass_fds=[theirs.fileno()],
                )
            stack.callback(self._stop)
            self._held = stack.pop_all()

    def lines(self) -> Generator[str, None, None]:
        """What the guest says, line by line, until it has powered off or was stopped."""
        with self._port.makefile("r", encoding="utf-8") as port:
            for line in port:
                if line.endswith("\n"):  # a guest that dies may do so in the middle of a word
                    yield line

    def lost(self) -> LostGuest:
        """Why nothing more is to be heard, with the end of the guest's console."""
        status = self._qemu.wait()
        why = f"its {self._limit_s} s were up" if status == 124 else f"QEMU's status is {status}"
        console = self._console.read_text(errors="replace").splitlines()[-CONSOLE_LINES:]
        return LostGuest(
            f"the guest with Linux {self.kernel.name} ended before it had reported: {why}\n"
            "--- end of its console ---\n" + "\n".join(console)
        )

    def close(self) -> None:
        """Stop the machine; its console stays in the cache as ``console-KERNEL``."""
        self._held.close()

    def _stop(self) -> None:
        self._qemu.terminate()
        self._qemu.wait()
        shutil.copy(self._console, cache.folder() / f"console-{self.kernel.name}")


def shell(kernel: Kernel, limit_s: int = 4 * 3600) -> int:
    """A root shell in the guest on this terminal, the project mounted; `exit` powers it off."""
    with tempfile.TemporaryDirectory(prefix="run.", dir=cache.folder()) as folder:
        command = _command(kernel, (), Path(folder), "")
        limited = [*_limited(limit_s, "--foreground"), *command]
        return subprocess.run([*limited, "-serial", "mon:stdio"], check=False).returncode


def _limited(limit_s: int, *options: str) -> list[str]:
    """timeout(1) ends the machine even where we are killed before we could."""
    return [tool("timeout"), "--kill-after=10", *options, str(limit_s)]


def _command(kernel: Kernel, selection: Iterable[str], folder: Path, append: str) -> list[str]:
    """QEMU's command line, its disks made in ``folder``."""
    project.disk(kernel, selection, folder / "project.img")
    _swap(folder / "swap.img")
    _sparse(folder / "io.img", 256)
    drives = {
        "root": f"{rootfs.image(kernel)},snapshot=on",
        "project": f"{folder / 'project.img'},readonly=on",
        "swap": f"{folder / 'swap.img'}",
        "io": f"{folder / 'io.img'}",
    }
    command = [tool("qemu-system-x86_64"), *_MACHINE]
    for name, file in drives.items():
        command += ["-drive", f"if=none,format=raw,id={name},file={file}"]
    vmlinuz = str(kernels.files(kernel).vmlinuz)
    return [*command, "-kernel", vmlinuz, "-append", f"{_APPEND} {append}".strip()]


def _ports(reports: int, console: Path) -> list[str]:
    """The kernel's console goes to a file, the guest's reports through the inherited socket."""
    return [
        *("-serial", f"file:{console}"),
        *("-device", "virtio-serial-pci", "-chardev", f"socket,id=lab,fd={reports}"),
        *("-device", "virtserialport,chardev=lab,name=cgotel.lab"),
    ]


def _sparse(path: Path, mebibytes: int) -> None:
    with open(path, "wb") as file:
        file.truncate(mebibytes << 20)


def _swap(path: Path) -> None:
    _sparse(path, 256)
    path.chmod(0o600)
    run("mkswap", path)
