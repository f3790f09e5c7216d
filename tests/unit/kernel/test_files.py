"""A kernel file read again and again: whole, of one instant, and never an exception."""

import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from tests.unit.kernel.real import no_descriptor_left, open_descriptors, opened, processes, unprivileged

from cgotel.kernel import formats
from cgotel.kernel.files import Descriptors, JoinedFiles, KernelFile, read_once
from cgotel.kernel.source import State

KIB = 1024
SIZES = [0, 1, KIB - 1, KIB, KIB + 1, 2 * KIB, 4 * KIB - 1, 65536, 65537, 1024 * KIB, 5 * 1024 * KIB + 3]


@pytest.fixture
def directory(tmp_path: Path):
    with opened(tmp_path) as fd:
        yield fd


def kernel_file(
    directory: int,
    name: str,
    budget: int | Descriptors = 8,
    parse: Callable[[bytes], bytes] = bytes,
    many: bool = False,
) -> KernelFile[bytes | None]:
    descriptors = Descriptors(budget) if isinstance(budget, int) else budget
    return KernelFile(directory, name, parse, None, descriptors, many)


@pytest.mark.parametrize("budget", [0, 1])
@pytest.mark.parametrize("many", [False, True])
def test_a_file_of_any_size_is_read_whole_while_it_grows_and_shrinks(
    tmp_path, directory, budget, many
) -> None:
    file = kernel_file(directory, "stat", budget, many=many)
    for size in [*SIZES, *reversed(SIZES)]:
        content = os.urandom(size)
        (tmp_path / "stat").write_bytes(content)
        assert file.read() == file.last == content
        assert read_once("stat", directory) == content
    file.close()


@pytest.mark.parametrize("budget", [0, 1])
def test_a_file_is_not_parsed_again_until_its_bytes_change(tmp_path, directory, budget) -> None:
    parsed = []
    file = kernel_file(directory, "memory.max", budget, parse=lambda data: parsed.append(data) or data)
    for content in (b"max\n", b"max\n", b"1\n", b"1\n", b"max\n"):
        (tmp_path / "memory.max").write_bytes(content)
        assert file.read() == content
    assert parsed == [b"max\n", b"1\n", b"max\n"]
    file.close()


def test_a_file_beyond_64_mib_is_a_failure_with_a_reason_and_not_a_part_of_it(tmp_path, directory) -> None:
    with open(tmp_path / "stat", "wb") as huge:
        huge.truncate(64 * KIB * KIB)
    file = kernel_file(directory, "stat")
    assert file.read() is None
    assert (file.state, file.reason) == (State.FAILED, "larger than 64 MiB")


def test_a_list_of_processes_longer_than_one_read_is_whole(cgroup) -> None:
    with processes(cgroup, 800) as pids, opened(cgroup) as fd:
        file = KernelFile(fd, "cgroup.procs", formats.processes, None, Descriptors(1), many=True)
        for _ in range(3):
            assert file.read() == formats.Processes(800, frozenset(pids))
        file.close()
    assert len(pids) == 800


def test_an_absent_file_is_silent_until_it_is_asked_again(tmp_path, directory) -> None:
    file = kernel_file(directory, "memory.peak")
    assert file.read() is None
    assert (file.state, file.reason) == (State.ABSENT, "No such file or directory")
    (tmp_path / "memory.peak").write_bytes(b"1\n")
    assert file.read() is None
    file.retry()
    assert file.read() == b"1\n"
    assert file.state is State.OK
    file.close()


def test_a_file_that_comes_back_as_it_was_is_read_and_not_taken_for_unchanged(tmp_path, directory) -> None:
    file = kernel_file(directory, "memory.max", budget=0)
    for _ in range(2):
        (tmp_path / "memory.max").write_bytes(b"1\n")
        file.retry()
        assert file.read() == b"1\n"
        (tmp_path / "memory.max").unlink()
        assert file.read() is None


def test_a_file_without_the_right_to_read_it_is_denied(tmp_path, directory) -> None:
    (tmp_path / "io.stat").touch(mode=0)
    file = kernel_file(directory, "io.stat")
    with unprivileged():
        assert file.read() is None
    assert (file.state, file.reason) == (State.DENIED, "Permission denied")


def test_a_file_of_a_removed_cgroup_is_gone_and_gives_its_descriptor_back(cgroup) -> None:
    descriptors = Descriptors(3)
    with opened(cgroup) as fd:
        kept, unkept = kernel_file(fd, "cpu.stat", descriptors), kernel_file(fd, "cpu.stat", 0)
        assert kept.read() == unkept.read() != b""
        assert descriptors.free == 2
        cgroup.rmdir()
        assert kept.read() is kept.last is None
        assert (kept.state, kept.reason) == (State.GONE, "No such device")
        assert descriptors.free == 3
        assert unkept.read() is None
        assert unkept.state in (State.GONE, State.ABSENT)
        cgroup.mkdir()  # a namesake is another cgroup
        kept.retry()
        assert kept.read() is None


def test_a_file_that_the_kernel_refuses_is_off(cgroup) -> None:
    """A threaded cgroup has threads and no list of processes: EOPNOTSUPP, as with psi=0."""
    threaded = cgroup / "threaded"
    threaded.mkdir()
    (threaded / "cgroup.type").write_text("threaded")
    with opened(threaded) as fd:
        file = kernel_file(fd, "cgroup.procs")
        assert file.read() is None
    assert (file.state, file.reason) == (State.OFF, "Operation not supported")


def test_anything_else_is_a_failure_with_a_reason(tmp_path, directory) -> None:
    (tmp_path / "stat").mkdir()
    descriptors = Descriptors(1)
    file = kernel_file(directory, "stat", descriptors)
    assert file.read() is None
    assert (file.state, file.reason, descriptors.free) == (State.FAILED, "Is a directory", 1)


def test_within_the_budget_files_stay_open_and_beyond_it_they_do_not(tmp_path, directory) -> None:
    before = open_descriptors()
    descriptors = Descriptors(1)
    files = [kernel_file(directory, name, descriptors) for name in ("a", "b", "c")]
    for round_ in (b"1\n", b"2\n"):
        for file in files:
            (tmp_path / file.name).write_bytes(round_)
            assert file.read() == round_
        assert {entry.rpartition("/")[2] for entry in open_descriptors() - before} == {"a"}
    files[0].close()
    files[0].close()
    assert descriptors.free == 1
    assert files[2].read() == b"2\n"
    assert {entry.rpartition("/")[2] for entry in open_descriptors() - before} == {"c"}
    files[2].close()
    assert open_descriptors() == before


def test_without_a_descriptor_left_what_is_open_is_read_and_the_rest_says_why(tmp_path, directory) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(b"1\n")
    kept, late = kernel_file(directory, "a"), kernel_file(directory, "b")
    assert kept.read() == b"1\n"
    (tmp_path / "a").write_bytes(b"2\n")
    with no_descriptor_left():
        assert kept.read() == b"2\n"
        assert late.read() is None
    assert (late.state, late.reason) == (State.FAILED, "Too many open files")
    late.retry()
    assert late.read() == b"1\n"
    kept.close()
    late.close()


def joined_files(directory: int, names: Iterable[str], descriptors: Descriptors):
    """Files that are parsed to their names and what they say; the files, and a list of what was parsed."""
    files = [kernel_file(directory, name, descriptors) for name in names]
    parsed: list[str] = []

    def parser(said: tuple[str, ...]) -> Callable[[bytes], str]:
        def parse(text: bytes) -> str:
            parsed.append(f"{''.join(said)}:{text.decode()}".replace("\0", "|"))
            return parsed[-1]

        return parse

    return JoinedFiles(files, parser, "nothing"), files, parsed


@pytest.mark.parametrize("budget", [0, 1, 2, 3])
def test_joined_files_are_one_text_of_those_that_speak(tmp_path, directory, budget: int) -> None:
    descriptors = Descriptors(budget)
    joined, files, _ = joined_files(directory, "abc", descriptors)
    assert joined.read() == joined.last == "nothing"
    (tmp_path / "a").write_bytes(b"1")
    (tmp_path / "c").write_bytes(b"3")
    assert joined.read() == "nothing"
    for file in files:
        file.retry()
    joined.retry()
    assert joined.read() == "ac:1|3"
    for size in [*SIZES, *reversed(SIZES)]:
        (tmp_path / "a").write_bytes(b"1" * size)
        assert joined.read() == f"ac:{'1' * size}|3"
    (tmp_path / "b").write_bytes(b"2")
    assert joined.read() == "ac:|3"
    files[1].retry()
    joined.retry()
    assert joined.read() == "abc:|2|3"
    assert [file.state for file in files] == [State.OK] * 3
    for file in files:
        file.close()
    assert descriptors.free == budget


@pytest.mark.parametrize("budget", [0, 9])
def test_joined_files_are_not_parsed_again_until_one_has_changed(tmp_path, directory, budget: int) -> None:
    joined, _, parsed = joined_files(directory, "ab", Descriptors(budget))
    for a, b in [(b"1", b"2"), (b"1", b"2"), (b"1", b"3")]:
        (tmp_path / "a").write_bytes(a)
        (tmp_path / "b").write_bytes(b)
        assert joined.read() == f"ab:{a.decode()}|{b.decode()}"
    assert parsed == ["ab:1|2", "ab:1|3"]


def test_joined_files_of_a_removed_cgroup_are_silent(cgroup) -> None:
    descriptors = Descriptors(9)
    with opened(cgroup) as fd:
        joined, files, _ = joined_files(fd, ("cgroup.events", "cpu.stat"), descriptors)
        assert joined.read().startswith("cgroup.eventscpu.stat:populated 0")
        assert descriptors.free == 7
        cgroup.rmdir()
        assert joined.read() == "nothing"
        assert [file.state for file in files] == [State.GONE] * 2
        assert descriptors.free == 9


@pytest.mark.parametrize(
    ("soft", "hard", "wanted", "granted", "soft_after"),
    [
        (256, 256, 1000, 192, 256),  # no more to be had
        (256, 600, 1000, 536, 600),  # as far as the hard limit
        (256, 4096, 1000, 1000, 1064),  # no further than it needs
        (2048, 4096, 1000, 1000, 2048),  # and never down
        (40, 40, 1000, 0, 40),
    ],
)
def test_the_limit_of_open_files_is_raised_as_far_as_it_may_be(
    soft, hard, wanted, granted, soft_after
) -> None:
    script = (
        "import resource; from cgotel.kernel.files import Descriptors; "
        f"print(Descriptors.raised({wanted}).free, *resource.getrlimit(resource.RLIMIT_NOFILE))"
    )
    limited = subprocess.run(
        [sys.executable, "-c", script],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard)),
        capture_output=True,
        text=True,
        check=True,
    )
    assert [int(word) for word in limited.stdout.split()] == [granted, soft_after, hard]


@pytest.mark.parametrize(("free", "wanted", "taken"), [(100, 10, 10), (100, 80, 50), (1, 5, 0), (0, 5, 0)])
def test_a_part_of_the_budget_is_at_most_half_of_it(free: int, wanted: int, taken: int) -> None:
    whole = Descriptors(free)
    part = whole.part(wanted)
    assert (part.free, whole.free) == (taken, free - taken)
