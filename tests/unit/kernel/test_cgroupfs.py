"""The tree of cgroups: what is there, what has gone, and what could not be seen, each for itself."""

import errno
import os
import threading
from pathlib import Path

import pytest
from tests.unit.kernel.real import no_descriptor_left, open_descriptors, unprivileged

from cgotel.kernel.cgroupfs import CgroupTree
from cgotel.kernel.files import Descriptors
from cgotel.kernel.roots import Roots
from cgotel.testing import tree


@pytest.fixture
def mount(cgroup: Path):
    """A real cgroup as the mount of a tree that is closed, with nothing left open, in the end."""
    before = open_descriptors()
    cgroups = CgroupTree(str(cgroup))
    yield cgroup, cgroups
    cgroups.close()
    assert open_descriptors() == before


def paths(cgroups: CgroupTree) -> list[str]:
    return sorted(directory.path for directory in cgroups.walk())


def test_every_cgroup_is_found_parents_first_with_its_depth_and_ancestors(mount) -> None:
    cgroup, cgroups = mount
    tree({"a": {"b": {"c": {}}}, "d": {}}, into=cgroup)
    assert cgroups.update() == []
    assert paths(cgroups) == ["/", "/a", "/a/b", "/a/b/c", "/d"]
    order = [directory.path for directory in cgroups.walk()]
    assert order.index("/a") < order.index("/a/b") < order.index("/a/b/c")
    [leaf] = [directory for directory in cgroups.walk() if directory.path == "/a/b/c"]
    assert leaf.depth == 3
    assert [above.path for above in leaf.ancestors()] == ["/a/b", "/a", "/"]
    assert leaf.id == os.stat(cgroup / "a/b/c").st_ino


def test_one_that_is_removed_is_gone_and_its_siblings_stay(mount) -> None:
    cgroup, cgroups = mount
    tree({name: {"inner": {}} for name in "abc"}, into=cgroup)
    cgroups.update()
    (cgroup / "b/inner").rmdir()
    (cgroup / "b").rmdir()
    assert [directory.path for directory in cgroups.update()] == ["/b", "/b/inner"]
    assert paths(cgroups) == ["/", "/a", "/a/inner", "/c", "/c/inner"]
    assert cgroups.unopened == {}


def test_a_path_that_is_made_anew_between_updates_is_another_cgroup(mount) -> None:
    cgroup, cgroups = mount
    (cgroup / "web").mkdir()
    cgroups.update()
    old = cgroups.root.children["web"]
    (cgroup / "web").rmdir()
    (cgroup / "web").mkdir()
    assert cgroups.update() == [old]
    new = cgroups.root.children["web"]
    assert new is not old
    assert new.id != old.id
    assert new.made_ns >= old.made_ns


def test_its_names_are_what_the_kernel_lists_or_unknown(mount) -> None:
    cgroup, cgroups = mount
    (cgroup / "web").mkdir()
    for _ in range(2):
        assert cgroups.root.names() == set(os.listdir(cgroup)) > {"web", "cpu.stat"}
    with no_descriptor_left():
        assert cgroups.root.names() is None


def test_one_that_is_not_entered_hides_what_is_below_and_is_never_opened(cgroup) -> None:
    tree({"keep": {"inner": {}}, "skip": {"inner": {}}}, into=cgroup)
    asked = set()

    def enter(path: str, depth: int) -> bool:
        asked.add((path, depth))
        return path != "/skip"

    cgroups = CgroupTree(str(cgroup), enter)
    assert cgroups.update() == cgroups.update() == []
    assert paths(cgroups) == ["/", "/keep", "/keep/inner"]
    assert asked == {("/keep", 1), ("/skip", 1), ("/keep/inner", 2)}
    assert not any("skip" in descriptor for descriptor in open_descriptors())
    cgroups.close()


def test_one_that_vanishes_between_being_seen_and_being_opened_is_nothing_to_speak_of(cgroup) -> None:
    tree({"a": {}, "b": {}, "c": {}}, into=cgroup)

    def enter(path: str, depth: int) -> bool:
        if path == "/b":
            (cgroup / "b").rmdir()
        return True

    cgroups = CgroupTree(str(cgroup), enter)
    assert cgroups.update() == []
    assert paths(cgroups) == ["/", "/a", "/c"]
    assert cgroups.unopened == {}
    cgroups.close()


def test_what_cannot_be_listed_for_want_of_descriptors_is_not_gone(mount) -> None:
    cgroup, cgroups = mount
    tree({"a": {"b": {}}}, into=cgroup)
    cgroups.update()
    (cgroup / "new").mkdir()
    with no_descriptor_left():
        assert cgroups.update() == []
    assert paths(cgroups) == ["/", "/a", "/a/b"]
    assert {path: error.errno for path, error in cgroups.unopened.items()} == {
        "/": errno.EMFILE,
        "/a": errno.EMFILE,
    }
    cgroups.update()
    assert paths(cgroups) == ["/", "/a", "/a/b", "/new"]
    assert cgroups.unopened == {}


def test_directories_keep_within_their_budget_and_say_what_they_left_out(cgroup) -> None:
    tree({name: {} for name in "abcd"}, into=cgroup)
    descriptors = Descriptors(3)
    cgroups = CgroupTree(str(cgroup), descriptors=descriptors)
    cgroups.update()
    assert len(paths(cgroups)) == 1 + 3
    [error] = cgroups.unopened.values()
    assert error.errno == errno.EMFILE
    for directory in list(cgroups.root.children):
        (cgroup / directory).rmdir()
    assert len(cgroups.update()) == 3
    assert len(paths(cgroups)) == 1 + 1
    assert cgroups.unopened == {}
    cgroups.close()
    assert descriptors.free == 3


def test_one_that_may_not_be_opened_costs_itself_alone(tmp_path) -> None:
    tree({"open": {"inner": {}}, "shut": {"inner": {}}}, into=tmp_path)
    (tmp_path / "shut").chmod(0)
    for above in (tmp_path, *tmp_path.parents[:2]):
        above.chmod(0o755)
    cgroups = CgroupTree(str(tmp_path))
    with unprivileged():
        cgroups.update()
    assert paths(cgroups) == ["/", "/open", "/open/inner"]
    assert {path: error.errno for path, error in cgroups.unopened.items()} == {"/shut": errno.EACCES}
    (tmp_path / "shut").chmod(0o755)
    cgroups.update()
    assert paths(cgroups) == ["/", "/open", "/open/inner", "/shut", "/shut/inner"]
    assert cgroups.unopened == {}
    cgroups.close()


@pytest.mark.parametrize(
    "name",
    [
        "-rf",
        "--",
        " ",
        "a b",
        "tab\t",
        "\x01",
        "äöü",
        "*",
        "[x]",
        "%s",
        "\\x2d",
        "'\"",
        "~",
        "a" * 255,
    ],
)
def test_a_name_may_be_anything(mount, name: str) -> None:
    cgroup, cgroups = mount
    tree({name: {"inner": {}}}, into=cgroup)
    cgroups.update()
    assert paths(cgroups) == ["/", f"/{name}", f"/{name}/inner"]
    assert cgroups.root.children[name].children["inner"].id == os.stat(cgroup / name / "inner").st_ino


def test_a_name_with_a_newline_which_the_kernel_refuses_is_a_name(tmp_path) -> None:
    tree({"new\nline": {}}, into=tmp_path)
    cgroups = CgroupTree(str(tmp_path))
    cgroups.update()
    assert paths(cgroups) == ["/", "/new\nline"]
    cgroups.close()


def test_a_name_need_not_be_text(mount) -> None:
    cgroup, cgroups = mount
    os.mkdir(os.fsencode(cgroup) + b"/caf\xe9\xff")
    cgroups.update()
    assert [os.fsencode(path) for path in paths(cgroups)] == [b"/", b"/caf\xe9\xff"]


def test_files_and_links_are_no_cgroups(tmp_path) -> None:
    tree({"cpu.stat": "", "a": {}}, into=tmp_path)
    (tmp_path / "link").symlink_to("a")
    (tmp_path / "dangling").symlink_to("nowhere")
    cgroups = CgroupTree(str(tmp_path))
    cgroups.update()
    assert paths(cgroups) == ["/", "/a"]
    cgroups.close()


def test_hundreds_made_and_removed_meanwhile_lose_no_other_and_leave_nothing(mount) -> None:
    cgroup, cgroups = mount
    tree({"steady": {"inner": {}}}, into=cgroup)
    cgroups.update()
    steady = {directory.id for directory in cgroups.walk()}
    churn = threading.Thread(target=_churn, args=(cgroup / "steady", 500))
    churn.start()
    while churn.is_alive():
        assert not steady & {directory.id for directory in cgroups.update()}
        assert steady <= {directory.id for directory in cgroups.walk()}
    churn.join()
    cgroups.update()
    assert paths(cgroups) == ["/", "/steady", "/steady/inner"]
    assert cgroups.unopened == {}


def _churn(below: Path, count: int) -> None:
    for number in range(count):
        parent = below / f"pod-{number}"
        parent.mkdir()
        (parent / "container").mkdir()
        (parent / "container").rmdir()
        parent.rmdir()


def test_the_kernels_own_root_is_the_machine_and_a_cgroup_below_is_not(cgroup) -> None:
    mount = Roots.discover().cgroup
    whole, part = CgroupTree(str(mount)), CgroupTree(str(cgroup))
    assert (whole.root.is_machine, part.root.is_machine) == (
        not os.path.exists(f"{mount}/cgroup.type"),
        False,
    )
    whole.close()
    part.close()


def test_a_mount_that_is_not_there_raises(tmp_path) -> None:
    with pytest.raises(FileNotFoundError):
        CgroupTree(str(tmp_path / "nowhere"))


def test_a_mount_that_is_removed_says_so_and_keeps_standing(tmp_path) -> None:
    tree({"mount": {"a": {}}}, into=tmp_path)
    cgroups = CgroupTree(str(tmp_path / "mount"))
    cgroups.update()
    (tmp_path / "mount/a").rmdir()
    (tmp_path / "mount").rmdir()
    cgroups.update()
    assert set(cgroups.unopened) <= {"/"}
    cgroups.close()


def test_one_child_is_added_and_dropped_by_name(mount) -> None:
    cgroup, cgroups = mount
    tree({"a": {"inner": {}}, "b": {}}, into=cgroup)
    assert cgroups.add(cgroups.root, "a").path == "/a"
    assert paths(cgroups) == ["/", "/a"]
    assert cgroups.update_children(cgroups.root.children["a"]) == []
    assert paths(cgroups) == ["/", "/a", "/a/inner"]
    assert [directory.path for directory in cgroups.drop(cgroups.root, "a")] == ["/a", "/a/inner"]
    assert cgroups.drop(cgroups.root, "a") == []
    assert paths(cgroups) == ["/"]


def test_a_child_that_went_before_it_was_added_is_no_trouble(mount) -> None:
    _, cgroups = mount
    assert cgroups.add(cgroups.root, "gone") is None
    assert cgroups.unopened == {}


def test_the_children_of_one_directory_are_brought_up_to_date(mount) -> None:
    cgroup, cgroups = mount
    tree({"a": {}, "b": {"inner": {}}}, into=cgroup)
    assert cgroups.update_children(cgroups.root) == []
    (cgroup / "a").rmdir()
    assert [directory.path for directory in cgroups.update_children(cgroups.root)] == ["/a"]
    assert paths(cgroups) == ["/", "/b"]


def test_an_added_child_without_a_descriptor_left_is_told(cgroup) -> None:
    (cgroup / "a").mkdir()
    cgroups = CgroupTree(str(cgroup), descriptors=Descriptors(0))
    assert cgroups.add(cgroups.root, "a") is None
    assert cgroups.unopened["/a"].errno == errno.EMFILE
    cgroups.drop(cgroups.root, "a")
    assert cgroups.unopened == {}
    cgroups.close()
