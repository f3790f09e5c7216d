"""Where engines put containers: the paths are those of restart logs and of real daemons."""

from __future__ import annotations

from pathlib import Path

import pytest

from cgotel.kernel.roots import Roots
from cgotel.runtimes.engine.cgroups import by_shape, of_process
from cgotel.runtimes.engine.dialect import DOCKER, PODMAN
from cgotel.runtimes.engine.messages import About
from cgotel.testing import tree

ID = "0123456789abcdef" * 4
USER = "/user.slice/user-1000.slice/user@1000.service"


@pytest.mark.parametrize(
    ("dialect", "systemd", "rootless", "parent", "path"),
    [
        (DOCKER, True, False, "", f"/system.slice/docker-{ID}.scope"),
        (DOCKER, True, False, "ai.slice", f"/ai.slice/docker-{ID}.scope"),
        (DOCKER, True, False, "ai-train.slice", f"/ai.slice/ai-train.slice/docker-{ID}.scope"),
        (DOCKER, False, False, "", f"/docker/{ID}"),
        (DOCKER, False, False, "ai", f"/ai/{ID}"),
        (DOCKER, True, True, "", f"{USER}/user.slice/docker-{ID}.scope"),
        (PODMAN, True, False, "", f"/machine.slice/libpod-{ID}.scope"),
        (PODMAN, True, False, "/ai.slice", f"/ai.slice/libpod-{ID}.scope"),
        (PODMAN, False, False, "", f"/libpod_parent/libpod-{ID}"),
        (PODMAN, True, True, "", f"{USER}/user.slice/libpod-{ID}.scope"),
    ],
)
def test_by_shape(dialect, systemd: bool, rootless: bool, parent: str, path: str) -> None:
    about = About(dialect is PODMAN, systemd, rootless)
    assert by_shape(ID, parent, dialect, about, 1000) == path


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (f"0::/system.slice/docker-{ID}.scope\n", (7, f"/system.slice/docker-{ID}.scope")),
        (f"0::/machine.slice/libpod-{ID}.scope/container\n", (7, f"/machine.slice/libpod-{ID}.scope")),
        (f"0::/u.service/libpod-payload-{ID}\n", (7, f"/u.service/libpod-payload-{ID}")),
        (f"0::/docker/{'e' * 64}/docker/{ID}/init\n", (7, f"/docker/{'e' * 64}/docker/{ID}")),
        (f"4:memory:/docker/{ID}\n0::/\n", (7, None)),  # the v1 hierarchy names it, v2 does not
        (f"0::/../docker-{ID}.scope\n", (7, None)),  # outside of our cgroup namespace
        ("0::/system.slice/cron.service\n", (None, None)),  # somebody else has the pid
    ],
)
def test_of_process(tmp_path: Path, content: str, expected: tuple[int | None, str | None]) -> None:
    proc = tree({"7": {"cgroup": content}}, into=tmp_path)
    assert of_process(7, ID, Roots(proc=str(proc))) == expected


def test_a_process_that_is_gone_has_none(tmp_path: Path) -> None:
    assert of_process(8, ID, Roots(proc=str(tmp_path))) == (None, None)
