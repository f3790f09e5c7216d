"""The file systems that containers start from: one static busybox, made here, for want of a registry."""

from __future__ import annotations

import json
import struct
import tarfile
from hashlib import sha256
from io import BytesIO
from pathlib import Path

from tests.lab.guest.supervisors.model import GATE

APPLETS = ("cat", "dd", "false", "kill", "pidof", "sh", "sleep", "touch", "true")
NAMES = ("first", "second")
REGISTRY = "docker.io/library/"  # what a name without one means to all three
BUSYBOX = Path("/bin/busybox")

# mov 0, %eax: the shortest program that a real page fault ends.
_FAULT = b"\x8b\x04\x25\x00\x00\x00\x00"


def archive(name: str) -> bytes:
    """An image as `docker save` writes one: Docker, Podman and containerd all load it."""
    layer = _layer(name)
    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Env": ["PATH=/bin"]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{sha256(layer).hexdigest()}"]},
    }
    manifest = [{"Config": "config.json", "RepoTags": [f"{REGISTRY}{name}:latest"], "Layers": ["layer.tar"]}]
    buffer = BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        _file(tar, "layer.tar", layer)
        _file(tar, "config.json", json.dumps(config).encode())
        _file(tar, "manifest.json", json.dumps(manifest).encode())
    return buffer.getvalue()


def _layer(name: str) -> bytes:
    """The tree; the two differ in one file, so that the images do."""
    buffer = BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for folder in ("bin", "dev", "etc", "proc", "run", "sys", "tmp"):
            _entry(tar, folder, tarfile.DIRTYPE)
        _file(tar, "bin/busybox", BUSYBOX.read_bytes(), 0o755)
        for applet in APPLETS:
            _entry(tar, f"bin/{applet}", tarfile.SYMTYPE, linkname="busybox")
        _file(tar, "bin/fault", faulting(), 0o755)
        _file(tar, "bin/plain", b"neither a script nor a program\n")
        _file(tar, "image", name.encode())
        _entry(tar, GATE.removeprefix("/"), tarfile.FIFOTYPE)
    return buffer.getvalue()


def faulting() -> bytes:
    """An ELF executable of 127 bytes that reads address 0 (elf(5))."""
    base, header, program = 0x400000, 64, 56
    start = header + program
    ident = b"\x7fELF" + bytes((2, 1, 1)) + bytes(9)
    elf = struct.pack(
        "<16sHHIQQQIHHHHHH", ident, 2, 62, 1, base + start, header, 0, 0, header, program, 1, 0, 0, 0
    )
    size = start + len(_FAULT)
    return elf + struct.pack("<IIQQQQQQ", 1, 5, 0, base, base, size, size, 0x1000) + _FAULT


def _file(tar: tarfile.TarFile, name: str, content: bytes, mode: int = 0o644) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(content), mode
    tar.addfile(info, BytesIO(content))


def _entry(tar: tarfile.TarFile, name: str, kind: bytes, linkname: str = "") -> None:
    info = tarfile.TarInfo(name)
    info.type, info.mode, info.linkname = kind, 0o755, linkname
    tar.addfile(info)


def write_faulting(to: Path) -> None:
    """The same program on the host's file system."""
    to.write_bytes(faulting())
    to.chmod(0o755)
