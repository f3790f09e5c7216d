"""The guest's root file system: Debian, the kernel's modules, cgotel's dependencies, our units."""

from __future__ import annotations

import shutil
import tomllib
from importlib import metadata
from pathlib import Path

from tests.lab import cache, kernels
from tests.lab.host import ROOT, UV, need_root, run
from tests.lab.kernels import Kernel

OVERLAY = Path(__file__).parent / "overlay"
SYSTEM = ("dbus", "kmod", "procps", "python3", "systemd", "systemd-sysv", "udev")
# What supervises workloads and what kills them; nothing of it runs before a test starts it.
SUPERVISORS = ("containerd", "docker.io", "podman", "conmon", "crun", "runc", "netavark", "catatonit")
OOM_KILLERS = ("earlyoom", "systemd-oomd")
PACKAGES = (*SYSTEM, *SUPERVISORS, *OOM_KILLERS, "busybox-static", "collectd-core")
TEST_TOOLS = ("pytest", "pytest-timeout")


def image(kernel: Kernel) -> Path:
    """An ext4 image that boots to systemd, from the cache where none of its inputs has changed."""
    boot = kernels.files(kernel)
    packages = (*PACKAGES, *kernel.packages, f"libpython{kernel.python}")
    requirements = _requirements()
    inputs = (Path(__file__), OVERLAY, boot.release, kernel.suite, *packages, requirements)

    def build(to: Path) -> None:
        need_root("to make a root file system")
        tree = to.with_name("tree")
        run("mmdebstrap", "--variant=minbase", f"--include={','.join(packages)}", kernel.suite, tree)
        _add_modules(tree, boot)
        _add_dependencies(tree, kernel, requirements)
        _settle(tree)
        run("mke2fs", "-q", "-t", "ext4", "-d", tree, "-L", "lab", to, "2G")

    return cache.entry(f"image-{kernel.name}", cache.digest(*inputs), build)


def _settle(tree: Path) -> None:
    """Add our own files; with a machine id and these stamps no boot is taken for the first one.

    No unit is left enabled that Debian's packages enable: a boot starts what lab.service needs.
    """
    shutil.copytree(OVERLAY, tree, dirs_exist_ok=True)
    run("chroot", tree, "systemctl", "preset-all")
    for folder in ("etc", "var"):
        (tree / folder / ".updated").touch()


def _add_modules(tree: Path, boot: kernels.Files) -> None:
    shutil.copytree(boot.modules, tree / "usr/lib/modules" / boot.release)
    run("chroot", tree, "depmod", boot.release)


def _requirements() -> str:
    """The project's run-time dependencies and pytest, in the versions that the host tests with."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = {*project["dependencies"], *TEST_TOOLS}
    installed = {f"{dist.name}=={dist.version}" for dist in metadata.distributions()}
    pins = {pin for pin in installed if not pin.startswith("cgotel")}
    return "\n".join((*sorted(wanted), "---", *sorted(pins)))


def _add_dependencies(tree: Path, kernel: Kernel, requirements: str) -> None:
    wanted, pins = requirements.split("\n---\n")
    tree.with_name("requirements").write_text(wanted)
    tree.with_name("constraints").write_text(pins)
    packages = f"usr/local/lib/python{kernel.python}/dist-packages"
    run(
        *(*UV, "pip", "install", "--target", tree / packages, "--only-binary", ":all:"),
        *("--python-version", kernel.python, "--python-platform", "x86_64-manylinux_2_28"),
        *("-r", tree.with_name("requirements"), "-c", tree.with_name("constraints")),
    )
    run("chroot", tree, "python3", "-m", "compileall", "-q", f"/{packages}")
