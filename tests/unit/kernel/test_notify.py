"""inotify on a real cgroup and on plain directories: what is told, of whom, and until when."""

import os
import select
from pathlib import Path

import pytest
from tests.unit.kernel.real import no_descriptor_left, opened, processes

from cgotel.kernel.notify import Change, Notice, Notifications


@pytest.fixture
def notifications():
    with_watches = Notifications()
    yield with_watches
    with_watches.close()
    with_watches.close()


def wait(notifications: Notifications) -> list[Notice]:
    """The next notices, waited for."""
    assert select.select([notifications.fileno()], [], [], 20)[0]
    return notifications.read()


def test_directories_that_come_and_go_are_told_in_their_order(notifications, cgroup: Path) -> None:
    with opened(cgroup) as fd:
        watch = notifications.watch(fd)
        (cgroup / "web").mkdir()
        (cgroup / "web").rmdir()
        came, went = wait(notifications)
    assert came == (watch, Change.CREATED | Change.OF_DIRECTORY, "web")
    assert went == (watch, Change.REMOVED | Change.OF_DIRECTORY, "web")


def test_a_file_that_the_kernel_updates_is_told_by_the_watch_of_its_directory(notifications, cgroup) -> None:
    with opened(cgroup) as fd:
        pin = os.open("cgroup.events", os.O_PATH, dir_fd=fd)
        watch = notifications.watch(fd)
        with processes(cgroup, 1):
            names = [notice.name for notice in wait(notifications)]
        while names.count("cgroup.events") < 2:
            names += [notice.name for notice in wait(notifications) if notice.watch == watch]
        os.close(pin)


def test_a_forgotten_watch_says_no_more(notifications, tmp_path: Path) -> None:
    with opened(tmp_path) as fd:
        watch = notifications.watch(fd)
    notifications.forget(watch)
    notifications.forget(watch)
    (tmp_path / "late").touch()
    assert [notice.change for notice in wait(notifications)] == [Change.FORGOTTEN]
    assert notifications.read() == []


def test_names_are_as_the_file_system_has_them(notifications, tmp_path: Path) -> None:
    with opened(tmp_path) as fd:
        notifications.watch(fd)
        os.mkdir(os.fsencode(tmp_path) + b"/\xff\n" + b"x" * 250)
        [notice] = wait(notifications)
    assert os.fsencode(notice.name) == b"\xff\n" + b"x" * 250


def test_a_full_queue_says_so(notifications, tmp_path: Path) -> None:
    most = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    file, other = tmp_path / "a", tmp_path / "b"
    file.touch()
    other.touch()
    with opened(tmp_path) as fd, open(file, "wb") as a, open(other, "wb") as b:
        notifications.watch(fd)
        for _ in range(most // 2 + 2):
            os.write(a.fileno(), b"1")
            os.write(b.fileno(), b"1")
    changes = []
    while notices := notifications.read():
        changes += [notice.change for notice in notices]
    assert changes[-1] & Change.OVERFLOWED


def test_only_directories_are_watched(notifications, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    fd = os.open(tmp_path / "file", os.O_RDONLY)
    with pytest.raises(NotADirectoryError):
        notifications.watch(fd)
    os.close(fd)


def test_no_descriptor_left_is_an_oserror() -> None:
    with no_descriptor_left(), pytest.raises(OSError, match="Too many open files"):
        Notifications()
