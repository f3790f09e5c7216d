"""Which kernels the guest suite runs on, and where they come from: Debian's cloud kernels."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from tests.lab import cache
from tests.lab.host import LabError, run


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel series with the user space that is booted on it.

    ``package`` is Debian's meta package, which depends on the newest kernel of the series;
    ``suite`` is the Debian release of the user space, ``python`` the version that it ships, and
    ``packages`` what only this release has to be asked for.
    """

    name: str
    package: str
    suite: str
    python: str
    packages: tuple[str, ...] = ()


KERNELS = {
    kernel.name: kernel
    for kernel in (
        Kernel("6.1", "linux-image-cloud-amd64", suite="bookworm", python="3.11"),
        Kernel(
            "6.12", "linux-image-6.12-cloud-amd64", suite="trixie", python="3.13", packages=("docker-cli",)
        ),
    )
}


@dataclass(frozen=True, slots=True)
class Files:
    """A kernel unpacked: its release (``uname -r``), the image to boot and its modules' folder."""

    release: str
    vmlinuz: Path
    modules: Path


def chosen() -> list[Kernel]:
    """The kernels named in ``CGOTEL_LAB_KERNELS`` (comma-separated), all of them by default."""
    names = os.environ.get("CGOTEL_LAB_KERNELS") or ",".join(KERNELS)
    return [named(name.strip()) for name in names.split(",")]


def named(name: str) -> Kernel:
    """The kernel of that name, or a `LabError` with the names there are."""
    if name not in KERNELS:
        raise LabError(f"no kernel {name!r} in the lab: choose from {', '.join(KERNELS)}")
    return KERNELS[name]


def files(kernel: Kernel) -> Files:
    """The newest kernel of the series, downloaded with apt and unpacked in the cache.

    Nothing is installed: the machine's own /boot and /lib/modules stay as they are.
    """
    package, version = _newest(kernel)
    folder = cache.entry(
        f"kernel-{kernel.name}", cache.digest(package, version), lambda to: _unpack(package, to)
    )
    release = package.removeprefix("linux-image-")
    return Files(release, folder / f"boot/vmlinuz-{release}", folder / f"lib/modules/{release}")


def _newest(kernel: Kernel) -> tuple[str, str]:
    """Name and version of the real package, from ``Depends: linux-image-6.1.0-57-cloud-amd64 (= …)``."""
    try:
        shown = run("apt-cache", "show", "--no-all-versions", kernel.package)
    except LabError as error:
        raise LabError(f"apt knows no {kernel.package}: run apt-get update") from error
    series = re.escape(kernel.name)
    depends = re.search(rf"^Depends: (linux-image-{series}\.\S+)(?: \(= (\S+)\))?", shown, re.MULTILINE)
    if not depends:
        raise LabError(f"{kernel.package} of this Debian release is not Linux {kernel.name}")
    return depends[1], depends[2] or ""


def _unpack(package: str, to: Path) -> None:
    run("apt-get", "download", "-o", "APT::Sandbox::User=root", package, cwd=to.parent)
    [archive] = to.parent.glob("*.deb")
    run("dpkg-deb", "-x", archive, to)
