"""Names within collectd's limits: stable, of one line, and no two cgroups of one name."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.outputs.sweeps import cgroup

from cgotel.model import Entity
from cgotel.outputs.collectd.identifiers import MOST_BYTES, fitting, plugin_instance

ID = "3f4e5d6c7b8a" + "0" * 52
HASH = "[0-9a-f]{8}"
segments = st.text(
    st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=120
).filter(lambda s: s not in (".", ".."))
paths = st.lists(segments, min_size=1, max_size=4).map(lambda parts: "/" + "/".join(parts))


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/", "root"),
        ("/system.slice", "system.slice"),
        ("/system.slice/web.service", "web.service"),
        ("/inference.slice/inference-a.slice/llama.service", "llama.service"),
        (f"/system.slice/docker-{ID}.scope", "3f4e5d6c7b8a"),
        (f"/docker/{ID}/init.scope", "3f4e5d6c7b8a~init.scope"),
        ("/batch/job 7", "batch~job 7"),
        ("/batch/a\\x2db", "batch~a\\x2db"),
        ("/user.slice/user-1000.slice/session-2.scope", "session-2.scope"),
    ],
)
def test_what_is_plain_stays_plain(path, name):
    assert plugin_instance(cgroup(path)) == name


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/user.slice/user-1000.slice/user@1000.service/app.slice/foo.service", f"foo\\.service-{HASH}"),
        ("/a~b", f"a~b-{HASH}"),
        ("/two\nlines", rf"two\?lines-{HASH}"),
        ("/root", f"root-{HASH}"),
        ("/agent", f"agent-{HASH}"),
        ("/" + "x" * 128, f"x{{91}}-{HASH}"),
        ("/" + "é" * 64, f"é{{45}}-{HASH}"),
    ],
)
def test_what_must_be_changed_carries_a_hash(path, name):
    assert re.fullmatch(name, plugin_instance(cgroup(path)))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "/user.slice/user-1.slice/user@1.service/app.slice/a.service",
            "/user.slice/user-2.slice/user@2.service/app.slice/a.service",
        ),
        ("/a/b", "/a~b"),
        ("/" + "x" * 120 + "/1", "/" + "x" * 120 + "/2"),
        ("/a\nb", "/a\tb"),
        ("/root", "/"),
    ],
)
def test_two_cgroups_have_two_names(one, other):
    assert plugin_instance(cgroup(one)) != plugin_instance(cgroup(other))


@given(paths)
def test_every_name_fits(path):
    name = plugin_instance(cgroup(path))
    assert len(name.encode()) <= MOST_BYTES
    assert "/" not in name
    assert name.isprintable()
    assert name == plugin_instance(cgroup(path, 2))


@given(st.lists(paths, min_size=2, max_size=30, unique=True))
def test_no_two_paths_share_a_name(found):
    assert len({plugin_instance(cgroup(path)) for path in found}) == len(found)


def test_others_are_called_by_kind_and_key():
    assert plugin_instance(Entity("host", "x")) == ""
    assert plugin_instance(Entity("agent", "x")) == "agent"
    assert plugin_instance(Entity("gpu", "GPU-1")) == "gpu-GPU-1"


def test_a_part_may_be_empty():
    assert fitting("") == ""
