"""The watcher on a log of its own: what it tells, remembers, and why it cannot serve."""

import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import pytest
from tests.unit.watchers.kernel_log import reports
from tests.unit.watchers.kernel_log.told import escaped

from cgotel.clock import Timeline
from cgotel.contract import Bookmark, State, Stop, Unavailable, Watcher
from cgotel.evidence import Gap, HostState, OomKill
from cgotel.kernel.kmsg import Kmsg
from cgotel.kernel.roots import Roots
from cgotel.testing import Heard, tree, watched
from cgotel.watchers.kernel_log import KernelLog, KernelLogConfig, cgotel_watchers, watcher
from cgotel.watchers.kernel_log.position import decode

BOOT = "0d4f6a0c-7b3c-4bb6-8f0e-0123456789ab"
KILL = "Out of memory: Killed process {} (x) total-vm:1kB, anon-rss:1kB, file-rss:1kB, shmem-rss:0kB"


class Log:
    """A FIFO that gives one record a read, as the device does. It has no ring: what was read is gone."""

    def __init__(self, root: Path) -> None:
        self.root = root
        tree({"proc": {"sys": {"kernel": {"random": {"boot_id": BOOT + "\n"}}}}, "dev": {}}, into=root)
        os.mkfifo(root / "dev/kmsg")
        self.fd = os.open(root / "dev/kmsg", os.O_RDWR | os.O_NONBLOCK)
        fcntl.fcntl(self.fd, fcntl.F_SETFL, os.O_DIRECT | os.O_NONBLOCK)  # one write, one read
        fcntl.fcntl(self.fd, fcntl.F_SETPIPE_SZ, 1 << 20)
        self.number = 0

    def print(self, *lines: str, number: int | None = None, age_s: float = 0) -> None:
        for line in lines:
            self.number = self.number if number is None else number
            stamp = (Timeline().now() - Timeline().from_boottime(0)) // 1000 - int(age_s * 10**6)
            os.write(self.fd, b"6,%d,%d,-;%s\n" % (self.number, stamp, escaped(line)))
            self.number += 1

    def watcher(self, bookmark: Bookmark | None = None, **config: object) -> KernelLog:
        roots = Roots(proc=str(self.root / "proc"))
        return KernelLog(KernelLogConfig(**config), roots, Timeline(), bookmark or Bookmark())


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    made = Log(tmp_path)
    yield made
    os.close(made.fd)


def pids(heard: Heard) -> list[int]:
    return [kill.pid for kill in heard.all(OomKill)]


def test_it_is_offered() -> None:
    assert cgotel_watchers() == [KernelLog]
    assert issubclass(KernelLog, Watcher)


def test_what_the_log_holds_and_what_comes_is_told_in_order(log: Log) -> None:
    log.print(*reports.MEMCG.splitlines(), age_s=5)
    with watched(log.watcher()) as heard:
        heard.first(OomKill, lambda kill: kill.pid == 813)
        log.print(*reports.GLOBAL.splitlines())
        kill = heard.first(OomKill, lambda kill: kill.pid == 77)
    assert pids(heard) == [813, 77]
    assert abs(kill.time_ns - Timeline().now()) < 60 * 10**9
    assert [e.time_ns for e in heard.evidence] == sorted(e.time_ns for e in heard.evidence)


def test_a_kill_that_may_be_explained_is_told_when_nothing_follows(log: Log) -> None:
    with watched(log.watcher()) as heard:
        log.print(KILL.format(5))
        assert heard.first(OomKill).cgroup is None


def test_what_an_earlier_life_told_is_not_told_again_and_serves_what_follows(log: Log) -> None:
    bookmark = Bookmark()
    lines = reports.MEMCG.splitlines()
    log.print(KILL.format(5), *lines[:13])
    with watched(log.watcher(bookmark)) as heard:
        heard.first(OomKill)
    assert decode(bookmark.read()).sequence == 13
    log.number = 0
    log.print(KILL.format(5), *lines)  # the ring, once more from its beginning
    with watched(log.watcher(bookmark)) as heard:
        heard.first(OomKill)
    assert [(kill.pid, kill.cgroup) for kill in heard.all(OomKill)] == [(813, "/ai.slice/docker-77.scope")]
    assert heard.all(Gap) == []


def test_what_the_ring_lost_in_between_is_a_gap(log: Log) -> None:
    bookmark = Bookmark()
    with watched(log.watcher(bookmark)) as heard:
        log.print(KILL.format(5))
        heard.first(OomKill)
    log.print(KILL.format(6), number=100)
    with watched(log.watcher(bookmark)) as heard:
        gap = heard.first(Gap)
        heard.first(OomKill)
    assert "99 records" in gap.reason
    assert gap.since_ns <= gap.time_ns
    assert pids(heard) == [6]


def test_after_a_restart_of_the_host_the_numbers_begin_anew(log: Log) -> None:
    bookmark = Bookmark()
    with watched(log.watcher(bookmark)) as heard:
        log.print(KILL.format(5), number=90)
        heard.first(OomKill)
    tree({"proc": {"sys": {"kernel": {"random": {"boot_id": "other\n"}}}}}, into=log.root)
    log.print(KILL.format(6), number=3)
    with watched(log.watcher(bookmark)) as heard:
        assert heard.first(HostState).state == "boot"
        assert "restarted" in heard.first(Gap).reason
        assert heard.first(OomKill).pid == 6


@pytest.mark.parametrize("content", [b"", b"{", b"[1,2]", b'{"boot":"x"}', b"\xff" * 9])
def test_a_bookmark_that_cannot_be_read_is_none(log: Log, content: bytes) -> None:
    bookmark = Bookmark()
    bookmark.write(content)
    with watched(log.watcher(bookmark)) as heard:
        log.print(KILL.format(5))
        heard.first(OomKill)


def test_torn_and_foreign_records_are_passed_over(log: Log) -> None:
    with watched(log.watcher()) as heard:
        os.write(log.fd, b"garbage")
        os.write(log.fd, b"\xff\x00;;;\n")
        log.print(KILL.format(5))
        heard.first(OomKill)
    assert pids(heard) == [5]


def test_a_log_that_ends_is_an_error_and_not_silence(log: Log) -> None:
    ended, heard = log.watcher(), Heard()
    ended.start()
    log.print(KILL.format(5))
    os.close(log.fd)
    log.fd = os.open("/dev/null", os.O_RDONLY)
    with pytest.raises(OSError, match="ended"):
        ended.watch(heard.report, Stop())
    ended.close()
    ended.close()


@contextmanager
def no_device_of_our_own() -> Iterator[None]:
    with mock.patch.object(watcher, "_DEVICE", "/dev/no-such-kmsg"):
        yield


def unavailable(root: Path) -> Unavailable:
    made = KernelLog(KernelLogConfig(), Roots(proc=f"{root}/proc"), Timeline(), Bookmark())
    with pytest.raises(Unavailable) as raised:
        made.start()
    made.close()
    return raised.value


def test_a_container_without_the_device(tmp_path: Path) -> None:
    with no_device_of_our_own():
        status = unavailable(tmp_path).status
    assert (status.name, status.state) == ("kernel_log", State.ABSENT)
    assert f"{tmp_path}/dev/no-such-kmsg" in status.reason
    assert "--device" in status.remedy


@pytest.mark.parametrize("proc", ["/proc", "{}/proc", "{}/hostproc"])
def test_a_tree_without_devices_leaves_those_of_the_container(tmp_path: Path, proc: str) -> None:
    with mock.patch.object(Kmsg, "open") as opened:
        KernelLog(KernelLogConfig(), Roots(proc=proc.format(tmp_path)), Timeline(), Bookmark()).start()
    if os.path.exists("/dev/kmsg"):
        opened.assert_called_once_with("/dev/kmsg")


def test_a_masked_device(tmp_path: Path) -> None:
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/kmsg").symlink_to("/dev/null")
    status = unavailable(tmp_path).status
    assert status.state is State.MASKED
    assert "not the kernel's log" in status.reason


def test_a_log_that_is_restricted(tmp_path: Path) -> None:
    tree({"proc": {"sys": {"kernel": {"dmesg_restrict": "1\n"}}}}, into=tmp_path)
    refusal = PermissionError(1, "Operation not permitted")
    with mock.patch.object(Kmsg, "open", side_effect=refusal):
        status = unavailable(tmp_path).status
    assert status.state is State.DENIED
    assert "CAP_SYSLOG" in status.remedy
    assert "dmesg_restrict is 1" in status.remedy


def test_without_history_what_comes_after_the_start_is_told(log: Log) -> None:
    log.print(KILL.format(5))
    begun, heard, stop = log.watcher(history=False), Heard(), Stop()
    begun.start()
    log.print(KILL.format(6))
    thread = threading.Thread(target=begun.watch, args=(heard.report, stop))
    thread.start()
    heard.first(OomKill)
    stop.set()
    thread.join()
    begun.close()
    assert pids(heard) == [6]


class Kept(Bookmark):
    """Says when something was written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = threading.Event()

    def write(self, content: bytes) -> None:
        super().write(content)
        self.written.set()


@pytest.mark.skipif(not os.access("/dev/kmsg", os.R_OK), reason="this machine does not show its log")
@pytest.mark.parametrize("history", [False, True])
def test_the_real_log_is_read_and_remembered_at_once(history: bool) -> None:
    bookmark = Kept()
    with watched(KernelLog(KernelLogConfig(history=history), Roots(), Timeline(), bookmark)):
        assert bookmark.written.wait(60)
    position = decode(bookmark.read())
    assert position.boot == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert position.sequence > 0
