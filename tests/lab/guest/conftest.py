"""What guest tests are given: their kernel, a cgroup of their own, a disk to write to."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.lab import kernels, report
from tests.lab.guest.cgroups import Cgroup


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "kernel_file(name, since): the test needs this file of a cgroup, or this path, and may be "
        "skipped on kernels older than `since` (x.y); on all others it is required",
    )
    config.addinivalue_line(
        "markers",
        "only_on(*kernels): the test takes long, and what it tests hardly depends on the kernel; "
        "CGOTEL_LAB_EVERYWHERE=1 runs it on all",
    )
    if side := report.side(config):
        config.pluginmanager.register(side, "lab")


@pytest.fixture(scope="session", autouse=True, params=[kernel.name for kernel in kernels.chosen()])
def kernel(request: pytest.FixtureRequest) -> str:
    """The kernel series that the test runs on: each test runs once on every one."""
    return request.param


@pytest.fixture(scope="session")
def delegated() -> Cgroup:
    """The cgroup that systemd leaves to the tests; pytest itself sits in a child of it."""
    return Cgroup.delegated()


@pytest.fixture
def cgroup(request: pytest.FixtureRequest, delegated: Cgroup) -> Iterator[Cgroup]:
    """An empty cgroup for this test alone; whatever is left in it is killed and removed."""
    name = re.sub(r"\W", "_", request.node.originalname)
    with delegated.child(name) as own:
        yield own


@pytest.fixture(scope="session")
def disk() -> Path:
    """A virtio disk of 256 MiB that nobody else uses: its ``major:minor`` is in io.stat."""
    return Path("/dev/disk/by-id/virtio-io").resolve(strict=True)


@pytest.fixture(autouse=True)
def _required_kernel_files(request: pytest.FixtureRequest, delegated: Cgroup) -> None:
    for mark in request.node.iter_markers("kernel_file"):
        _require(delegated, *mark.args, **mark.kwargs)


def _require(delegated: Cgroup, name: str, since: str) -> None:
    if (delegated.path / name).exists():
        return
    reason = f"Linux {platform.release()} has no {name}"
    if _version(platform.release()) >= _version(since):
        pytest.fail(f"{reason}, though it came with {since}")
    pytest.skip(f"{reason}: it came with {since}")


def _version(release: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", release)[:2])
