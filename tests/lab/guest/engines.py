"""Docker and Podman as the lab's systemd runs them, a busybox image for each, and what their commands do."""

from __future__ import annotations

import io
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Self

IMAGE = "localhost/bb:1"
NEXT_IMAGE = "localhost/bb:2"

_LIMIT_S = 180
_APPLETS = ("cat", "false", "sh", "sleep", "tail", "true")


class Engine:
    """Runs within its ``with`` block; what was made in it is removed at the end."""

    def __init__(self, name: str, unit: str, socket: str) -> None:
        self.name = name
        self.unit = unit
        self.socket = socket

    def __enter__(self) -> Self:
        systemctl("start", "dbus.socket", self.unit)  # crun asks systemd for scopes over it
        for image in (IMAGE, NEXT_IMAGE):
            self._load(image)
        return self

    def __exit__(self, *_: object) -> None:
        for container in self("ps", "-aq").split():
            self("rm", "-f", container)
        systemctl("stop", self.unit)

    def __call__(self, *words: object, fails: bool = False) -> str:
        """What one of its commands printed; it must not fail, unless it is meant to."""
        done = subprocess.run(
            [self.name, *map(str, words)], capture_output=True, text=True, timeout=_LIMIT_S, check=False
        )
        assert fails == (done.returncode != 0), done.stderr
        return done.stdout.strip()

    def run(self, name: str, *command: str, options: tuple[str, ...] = (), fails: bool = False) -> str:
        """Begin a container in the background, without a network; its id."""
        return self(
            *("run", "-d", "--name", name, "--network", "none", *options, IMAGE, *command), fails=fails
        )

    def restart(self) -> None:
        """Restart the daemon: with it Docker's containers end."""
        systemctl("restart", f"{self.name}.service")

    def _load(self, image: str) -> None:
        done = subprocess.run(
            [self.name, "import", "-", image],
            input=_root(image),
            capture_output=True,
            timeout=_LIMIT_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr.decode()


def engine(name: str) -> Engine:
    """``docker`` or ``podman``."""
    if name == "docker":
        return Engine("docker", "docker.service", "/run/docker.sock")
    return Engine("podman", "podman.socket", "/run/podman/podman.sock")


def systemctl(*words: str) -> None:
    done = subprocess.run(
        ["systemctl", *words], capture_output=True, text=True, timeout=_LIMIT_S, check=False
    )
    assert done.returncode == 0, done.stderr


def _root(label: str) -> bytes:
    """A root file system of busybox; two with different labels are different images."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as tar:
        tar.add(Path(shutil.which("busybox") or "/bin/busybox").resolve(), "bin/busybox")
        for applet in _APPLETS:
            link = tarfile.TarInfo(f"bin/{applet}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(link)
        text = tarfile.TarInfo("label")
        text.size = len(label)
        tar.addfile(text, io.BytesIO(label.encode()))
    return content.getvalue()
