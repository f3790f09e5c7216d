"""Where the kernel's file systems are, on hosts and in containers of all kinds."""

from pathlib import Path

import pytest

from cgotel.kernel.roots import Roots, cgroup_options
from cgotel.testing import tree

CGROUP2 = {"cgroup.controllers": "cpu memory\n"}


@pytest.fixture
def host(tmp_path: Path):
    """A host's root directory and what is discovered with HOST_ROOT there."""

    def discover(content: dict, mounts: str = "") -> Roots:
        tree({"proc": {"self": {"mounts": mounts}}, "sys": {"fs": {}}}, into=tmp_path)
        tree(content, into=tmp_path)
        return Roots.discover({"HOST_ROOT": str(tmp_path)})

    return discover


def test_a_unified_hierarchy_is_where_systemd_mounts_it(host, tmp_path) -> None:
    found = host({"sys": {"fs": {"cgroup": CGROUP2}}})
    assert found == Roots(f"{tmp_path}/proc", f"{tmp_path}/sys", f"{tmp_path}/sys/fs/cgroup", hybrid=False)


def test_a_hybrid_hierarchy_stands_beside_the_controllers(host, tmp_path) -> None:
    found = host({"sys": {"fs": {"cgroup": {"memory": {}, "unified": CGROUP2}}}})
    assert (found.cgroup, found.hybrid) == (f"{tmp_path}/sys/fs/cgroup/unified", True)


def test_with_version_1_alone_there_is_no_cgroup_mount(host) -> None:
    mounts = "tmpfs /sys/fs/cgroup tmpfs ro 0 0\ncgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n"
    found = host({"sys": {"fs": {"cgroup": {"memory": {}}}}}, mounts)
    assert found.cgroup is None


def test_a_mount_elsewhere_is_found_below_the_hosts_root(host, tmp_path) -> None:
    found = host({"mnt": {"cg": CGROUP2}}, "cgroup2 /mnt/cg cgroup2 rw,nsdelegate 0 0\n")
    assert (found.cgroup, found.hybrid) == (f"{tmp_path}/mnt/cg", False)


def test_a_mount_elsewhere_beside_version_1_is_hybrid(host, tmp_path) -> None:
    mounts = "cgroup /cg/cpu cgroup rw,cpu 0 0\ncgroup2 /mnt/cg cgroup2 rw 0 0\n"
    assert host({"mnt": {"cg": CGROUP2}}, mounts).hybrid is True


def test_a_mount_that_the_container_sees_below_the_hosts_root_is_not_put_there_twice(host, tmp_path) -> None:
    mounts = f"cgroup2 /own/cg cgroup2 ro 0 0\ncgroup2 {tmp_path}/mnt/cg cgroup2 ro 0 0\n"
    assert host({"mnt": {"cg": CGROUP2}}, mounts).cgroup == f"{tmp_path}/mnt/cg"


def test_a_mount_whose_files_cannot_be_seen_is_still_the_mount(host, tmp_path) -> None:
    """So that the collector says what open(2) says, and not that there is no cgroup v2."""
    assert host({}, "cgroup2 /mnt/cg cgroup2 rw 0 0\n").cgroup == f"{tmp_path}/mnt/cg"


@pytest.mark.parametrize(
    ("escaped", "name"),
    [
        (r"a\040b", "a b"),
        (r"a\011b", "a\tb"),
        (r"a\012b", "a\nb"),
        (r"a\134b", "a\\b"),
        (r"a\134040b", r"a\040b"),
        (r"a\134\040b", "a\\ b"),
        ("a\rb", "a\rb"),
        ("café", "café"),
    ],
)
def test_a_mount_point_is_read_as_the_kernel_escapes_it(host, tmp_path, escaped: str, name: str) -> None:
    found = host({name: CGROUP2}, f"none / ext4 rw 0 0\ncgroup2 /{escaped} cgroup2 rw 0 0\n")
    assert found.cgroup == f"{tmp_path}/{name}"


@pytest.mark.parametrize(
    "mounts", ["", "\n", "cgroup2\n", "cgroup2 /mnt/cg\n", "cgroup2 /mnt/cg xfs rw\n", "\0\0"]
)
def test_a_mounts_file_that_says_nothing_finds_nothing(host, mounts: str) -> None:
    assert host({}, mounts).cgroup is None


def test_without_a_mounts_file_there_is_no_mount(tmp_path) -> None:
    assert Roots.discover({"HOST_PROC": str(tmp_path), "HOST_SYS": str(tmp_path)}).cgroup is None


def test_each_variable_stands_for_itself(tmp_path) -> None:
    tree({"s": {"fs": {"cgroup": CGROUP2}}, "p": {}, "c": {"unified": {}}}, into=tmp_path)
    at = str(tmp_path)
    assert Roots.discover({"HOST_PROC": f"{at}/p", "HOST_SYS": f"{at}/s"}) == Roots(
        f"{at}/p", f"{at}/s", f"{at}/s/fs/cgroup"
    )
    assert Roots.discover({"HOST_ROOT": f"{at}/", "HOST_SYS": f"{at}/s"}).proc == f"{at}/proc"
    chosen = Roots.discover({"HOST_SYS": f"{at}/s", "HOST_CGROUP": f"{at}/c/unified/"})
    assert (chosen.cgroup, chosen.hybrid) == (f"{at}/c/unified/", True)
    assert Roots.discover({"HOST_CGROUP": f"{at}/c"}) == Roots("/proc", "/sys", f"{at}/c", hybrid=False)


def test_an_empty_variable_is_none() -> None:
    unset = Roots.discover({})
    assert Roots.discover(dict.fromkeys(["HOST_ROOT", "HOST_PROC", "HOST_SYS", "HOST_CGROUP"], "")) == unset
    assert Roots.discover({"HOST_ROOT": "/"}) == unset


def test_this_machine_has_a_hierarchy_with_its_core_files() -> None:
    mount = Roots.discover().cgroup
    assert mount is not None
    assert (Path(mount) / "cgroup.procs").read_text() != ""


@pytest.mark.parametrize(
    ("mounts", "options"),
    [
        (
            "cgroup2 /cg cgroup2 rw,nsdelegate,memory_localevents 0 0\n",
            {"rw", "nsdelegate", "memory_localevents"},
        ),
        ("cgroup /cg/cpu cgroup rw,cpu 0 0\ncgroup2 /cg cgroup2 rw 0 0\n", {"rw"}),
        ("proc /proc proc rw 0 0\n", set()),
        ("cgroup2 /cg cgroup2\n", set()),
    ],
)
def test_the_hierarchys_options_are_those_of_any_mount_of_it(host, tmp_path, mounts, options) -> None:
    host({}, mounts)
    assert cgroup_options(f"{tmp_path}/proc") == options


def test_without_a_mounts_file_there_are_no_options(tmp_path) -> None:
    assert cgroup_options(str(tmp_path)) == set()
