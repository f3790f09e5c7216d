"""What people call a cgroup."""

import pytest
from tests.unit.outputs.sweeps import cgroup

from cgotel.model import Entity
from cgotel.outputs.names import name_of, path_of

ID = "3f4e5d6c7b8a" + "0" * 52
POD = "kubepods-burstable-pod8f0e7c52_41d3_4b1a_9a6f_2c2b6f6e1d11.slice"


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/", "/"),
        ("/system.slice", "system.slice"),
        ("/system.slice/nginx.service", "nginx.service"),
        (f"/system.slice/docker-{ID}.scope", "3f4e5d6c7b8a"),
        (f"/docker/{ID}", "3f4e5d6c7b8a"),
        (f"/docker/{ID}/init.scope", "3f4e5d6c7b8a/init.scope"),
        (f"/machine.slice/libpod-{ID}.scope/container", "3f4e5d6c7b8a/container"),
        (f"/docker/{ID}/system.slice/web.service", "3f4e5d6c7b8a/system.slice/web.service"),
        (f"/kubepods.slice/{POD}", "8f0e7c52-41d3-4b1a-9a6f-2c2b6f6e1d11"),
        ("/user.slice/user-1000.slice/session-2.scope", "session-2.scope"),
        ("/system.slice/web.service/worker/3", "web.service/worker/3"),
        ("/batch/job 7", "/batch/job 7"),
    ],
)
def test_by_path(path, name):
    assert name_of(cgroup(path), path) == name


def test_a_container_that_has_a_name_is_called_by_it():
    path = f"/docker/{ID}"
    entity = cgroup(path, container_name="db")
    assert name_of(entity, path) == "db"


def test_what_lies_within_a_named_container_is_found_by_its_id():
    path = f"/docker/{ID}/init.scope"
    assert name_of(cgroup(path, container_name="db"), path) == "db/init.scope"


def test_only_a_cgroup_has_a_path():
    assert path_of(cgroup("/a/b")) == "/a/b"
    assert path_of(Entity("host", "vm")) is None
