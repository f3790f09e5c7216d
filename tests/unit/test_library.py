"""A few lines of Python find one cgroup by any of its names."""

import pytest

import cgotel
from cgotel.contract import Unavailable
from cgotel.kernel.roots import Roots
from cgotel.testing import tree

ID = "4f2a91c0d7e3" * 5 + "abcd"


@pytest.fixture
def roots(tmp_path):
    stat = {"cpu.stat": "usage_usec 3\nuser_usec 1\nsystem_usec 2\n", "cgroup.procs": ""}
    tree(
        {
            **stat,
            "cgroup.controllers": "cpu memory\n",
            "system.slice": {
                **stat,
                "memory.max": "1000\n",
                "memory.current": "400\n",
                f"docker-{ID}.scope": {**stat, "memory.max": "max\n", "memory.current": "100\n"},
                "web.service": {**stat, "memory.max": "500\n", "memory.current": "300\n", "inner": stat},
            },
        },
        into=tmp_path,
    )
    return Roots(cgroup=str(tmp_path))


@pytest.mark.parametrize("name", [f"/system.slice/docker-{ID}.scope", f"docker-{ID}.scope", ID, ID[:12]])
def test_a_container_is_found_by_path_scope_id_or_short_id(roots, name):
    found = cgotel.read(name, roots)
    assert found.metric("cgroup.memory.effective_limit") == 1000
    assert found.attribute("cgroup.memory.effective_limit", "cgroup.limit.owner") == "/system.slice"
    assert found.metric("cgroup.memory.headroom") == 600


def test_a_unit_is_found_by_name_and_its_own_limit_is_its_own(roots):
    found = cgotel.read("web.service", roots)
    assert found.metric("cgroup.memory.effective_limit") == 500
    assert found.attribute("cgroup.memory.effective_limit", "cgroup.limit.owner") == "self"


def test_what_is_not_there_is_a_lookup_error(roots):
    with pytest.raises(LookupError, match=r"no cgroups are called 'nope\.service'"):
        cgotel.read("nope.service", roots)


def test_a_snapshot_holds_every_cgroup_parents_first(roots):
    paths = [str(r.entity.attributes["process.linux.cgroup"]) for r in cgotel.snapshot(roots)]
    assert len(paths) == 5
    assert paths[0] == "0::/"
    assert paths.index("0::/system.slice/web.service") < paths.index("0::/system.slice/web.service/inner")


def test_without_cgroup_v2_it_says_so():
    with pytest.raises(Unavailable, match="no cgroup v2 hierarchy is mounted"):
        cgotel.snapshot(Roots(cgroup=None))
