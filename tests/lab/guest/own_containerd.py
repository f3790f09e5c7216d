"""A containerd of its own for the tests, with a busybox image, and what ctr does with it."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import signal
import subprocess
import tarfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

IMAGE = "docker.io/lab/busybox:1"
PAUSE = "docker.io/lab/pause:1"

_LIMIT_S = 90
_APPLETS = ("cat", "false", "kill", "sh", "sleep", "tail", "true")
_CONFIG = """
version = 2
root = "{folder}/root"
state = "{folder}/state"
[grpc]
  address = "{folder}/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "native"
"""


class Containerd:
    """Runs within its ``with`` block; its socket, its state and its tasks are nobody else's."""

    def __init__(self, folder: Path) -> None:
        self.socket = str(folder / "containerd.sock")
        self._folder = folder
        self._log = folder / "log"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        (self._folder / "config.toml").write_text(_CONFIG.format(folder=self._folder, pause=PAUSE))
        _write_image(self._folder / "image.tar")
        self.start()
        for namespace in ("default", "moby", "k8s.io"):
            self.ctr("images", "import", self._folder / "image.tar", namespace=namespace)
        return self

    def __exit__(self, *_: object) -> None:
        for namespace in ("default", "moby", "k8s.io"):
            for task in self.ctr("tasks", "ls", "-q", namespace=namespace).split():
                self.ctr("tasks", "rm", "-f", task, namespace=namespace)
        self.stop()
        print(self._log.read_text()[-4000:])

    def start(self) -> None:
        """Start the daemon; tasks of its former life are there again."""
        with open(self._log, "ab") as log:
            self._process = subprocess.Popen(
                ["containerd", "-c", self._folder / "config.toml"], stdout=log, stderr=log
            )
        eventually(lambda: self._ctr("version").returncode == 0, "containerd answers")

    def stop(self) -> None:
        """Stop the daemon, and leave its tasks alone."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(_LIMIT_S)

    def ctr(self, *words: object, namespace: str = "default") -> str:
        """What a command of ctr printed; it must not fail."""
        done = self._ctr(*words, namespace=namespace)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def run(
        self, name: str, *command: str, options: tuple[str, ...] = (), namespace: str = "default"
    ) -> None:
        """Begin a container in the background."""
        self.ctr(
            *("run", "-d", "--snapshotter", "native", *options, IMAGE, name, *command), namespace=namespace
        )

    def remove(self, name: str, namespace: str = "default") -> None:
        """End a container, if it still runs, and remove all of it."""
        self._ctr("tasks", "rm", "-f", name, namespace=namespace)
        self.ctr("containers", "rm", name, namespace=namespace)

    def pid(self, name: str, namespace: str = "default") -> int:
        """Its main process."""
        rows = (line.split() for line in self.ctr("tasks", "ls", namespace=namespace).splitlines())
        return next(int(row[1]) for row in rows if row[0] == name)

    def _ctr(self, *words: object, namespace: str = "default") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["ctr", "-a", self.socket, "-n", namespace, *map(str, words)],
            capture_output=True,
            text=True,
            timeout=_LIMIT_S,
            check=False,
        )


def eventually(holds: Callable[[], object], what: str) -> None:
    """Wait until something holds."""
    until = time.monotonic() + _LIMIT_S
    while not holds():
        if time.monotonic() > until:
            raise TimeoutError(f"not within {_LIMIT_S} s: {what}")
        time.sleep(0.05)


def _write_image(to: Path) -> None:
    """An image as ``docker save`` writes it: busybox, and names for some of its applets."""
    layer = _layer(Path(shutil.which("busybox") or "/bin/busybox"))
    layer_id = f"sha256:{hashlib.sha256(layer).hexdigest()}"
    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Cmd": ["/bin/sleep", "100000"], "Env": ["PATH=/bin"]},
        "rootfs": {"type": "layers", "diff_ids": [layer_id]},
        "history": [],
    }
    manifest = [{"Config": "config.json", "RepoTags": [IMAGE, PAUSE], "Layers": ["layer.tar"]}]
    with tarfile.open(to, "w") as tar:
        _add(tar, "config.json", json.dumps(config).encode())
        _add(tar, "layer.tar", layer)
        _add(tar, "manifest.json", json.dumps(manifest).encode())


def _layer(busybox: Path) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as tar:
        for name in ("bin", "dev", "etc", "proc", "sys", "tmp"):
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(folder)
        _add(tar, "bin/busybox", busybox.read_bytes(), 0o755)
        for applet in _APPLETS:
            link = tarfile.TarInfo(f"bin/{applet}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(link)
    return content.getvalue()


def _add(tar: tarfile.TarFile, name: str, content: bytes, mode: int = 0o644) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), mode
    tar.addfile(entry, io.BytesIO(content))
