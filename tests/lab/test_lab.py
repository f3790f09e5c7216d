"""The lab itself, as far as its host side can go wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.lab import cache, host, kernels
from tests.lab.vm import Guest


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CGOTEL_CACHE", str(tmp_path))
    return tmp_path / "lab"


def test_an_entry_is_made_once(empty_cache: Path) -> None:
    first = cache.entry("thing-1", "aaa", lambda to: to.write_text("first"))
    again = cache.entry("thing-1", "aaa", lambda to: to.write_text("again"))
    assert first == again == empty_cache / "thing-1-aaa"
    assert again.read_text() == "first"


def test_an_entry_from_other_inputs_takes_the_place_of_the_old(empty_cache: Path) -> None:
    for name, key in (("thing-1", "aaa"), ("thing-12", "aaa"), ("thing-1", "bbb")):
        cache.entry(name, key, lambda to: to.mkdir())
    assert sorted(path.name for path in empty_cache.glob("thing*")) == ["thing-1-bbb", "thing-12-aaa"]


def test_a_build_that_fails_leaves_nothing(empty_cache: Path) -> None:
    def build(to: Path) -> None:
        to.write_text("half")
        raise host.LabError("no")

    with pytest.raises(host.LabError):
        cache.entry("thing", "aaa", build)
    assert list(empty_cache.glob("thing*")) == []


def test_the_hash_knows_place_and_content(tmp_path: Path) -> None:
    file = tmp_path / "a" / "one"
    file.parent.mkdir()
    file.write_text("1")
    seen = {cache.digest(tmp_path)}
    file.write_text("2")
    seen.add(cache.digest(tmp_path))
    file.rename(file.with_name("two"))
    seen.add(cache.digest(tmp_path))
    assert len(seen) == 3


def test_a_missing_program_names_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host.shutil, "which", lambda name, path: None)
    with pytest.raises(host.LabError, match="needs qemu-system-x86_64: apt-get install qemu-system-x86 "):
        host.tool("qemu-system-x86_64")


def test_a_program_that_fails_says_what_it_said() -> None:
    with pytest.raises(host.LabError, match=r"(?s)^ls failed with status 2: .*No such file"):
        host.run("ls", "/nowhere")


def test_an_unknown_kernel_names_the_known() -> None:
    with pytest.raises(host.LabError, match=r"no kernel '6\.2' in the lab: choose from 6\.1, 6\.12"):
        kernels.named("6.2")


@pytest.mark.timeout(600)  # the first run makes the image
def test_a_guest_whose_time_is_up_is_lost() -> None:
    guest = Guest(kernels.named("6.1"), (), limit_s=1)
    try:
        assert list(guest.lines()) == []
        assert "Linux 6.1 ended before it had reported: its 1 s were up" in str(guest.lost())
    finally:
        guest.close()
