"""The watcher: reads the log as it grows, from where the agent's last life stopped."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any

from cgotel.contract import (
    Bookmark,
    Report,
    Roots,
    SourceStatus,
    State,
    Stop,
    Timeline,
    Unavailable,
    Watcher,
    WatcherSettings,
)
from cgotel.evidence import Evidence, Gap, HostState
from cgotel.kernel import topology
from cgotel.kernel.files import read_once
from cgotel.kernel.kmsg import Kmsg, NotTheLog, Record, parse
from cgotel.kernel.source import state_of
from cgotel.watchers.kernel_log import oneliners
from cgotel.watchers.kernel_log.line import NAME, SECOND
from cgotel.watchers.kernel_log.position import Position, decode, encode
from cgotel.watchers.kernel_log.reader import Reader
from cgotel.watchers.kernel_log.stamps import Stamps

_DEVICE = "/dev/kmsg"
_SETTLE_S = 0.05  # how long the next record of an unfinished report is waited for
_SAVE_NS = 30 * SECOND
_TURN = 256  # records between two looks at the request to stop
_WOKE = oneliners.WOKE.encode()


class KernelLogConfig(WatcherSettings, frozen=True):
    """``[watchers.kernel_log]``."""

    history: bool = True
    """Whether a first start tells what the log holds from before it; later starts go on where one stopped."""


class KernelLog(Watcher):
    """The kernel's own words on kills, faults and devices, each within milliseconds."""

    name = NAME
    Config = KernelLogConfig
    needs = ("/dev/kmsg, readable; CAP_SYSLOG where kernel.dmesg_restrict=1",)

    config: KernelLogConfig

    def __init__(self, config: Any, roots: Roots, timeline: Timeline, bookmark: Bookmark) -> None:
        super().__init__(config, roots, timeline, bookmark)
        self._log: Kmsg | None = None
        self._boot = ""
        self._told = -1
        self._saved = -1
        self._saved_ns = 0
        self._fresh = False

    def start(self) -> None:
        """Open the log. Raises `Unavailable` where it is missing, masked or not for us."""
        self._log = self._opened()
        self._boot = topology.boot_id(self.roots.proc)
        if not self.config.history and decode(self.bookmark.read()) is None:
            self._told = _last_sequence(self._log)

    def watch(self, report: Report, stop: Stop) -> None:
        """Tell what the ring still holds and was not told yet, then what comes."""
        log = self._log
        assert log is not None  # start() came first
        stamps = Stamps(self.timeline)
        reader = self._picked_up(log, stamps, report)
        waited = False
        try:
            while not stop.is_set():
                self._take(log, reader, stamps, report, stop, waited)
                self._save(reader, stamps, soon=False)
                waited = stop.wait_for(log.fileno(), _SETTLE_S if reader else None)
                if not waited:
                    self._tell(reader.flush(), report)
        finally:
            self._save(reader, stamps, soon=True)

    def close(self) -> None:
        """Close the log. May be called twice."""
        if self._log is not None:
            self._log.close()
            self._log = None

    def _opened(self) -> Kmsg:
        found = self._paths()
        path = next(filter(os.path.exists, found), found[0])
        try:
            return Kmsg.open(path)
        except NotTheLog as error:
            reason, remedy = f"{path} is not the kernel's log", "give the container the host's /dev/kmsg"
            raise Unavailable(SourceStatus(NAME, State.MASKED, reason, remedy)) from error
        except OSError as error:
            state = state_of(error)
            reason = f"{path}: {error.strerror}"
            raise Unavailable(SourceStatus(NAME, state, reason, self._remedy(state))) from error

    def _paths(self) -> list[str]:
        """Where the device may be: beside the host's /proc, else where a container has its own devices.

        The log is not namespaced: every node of it is the host's.
        """
        root, proc, _ = self.roots.proc.rstrip("/").rpartition("/proc")
        return [f"{root}{_DEVICE}", _DEVICE] if proc and root else [_DEVICE]

    def _remedy(self, state: State) -> str:
        if state is State.ABSENT:
            return "give the container the host's /dev/kmsg (docker run --device /dev/kmsg:/dev/kmsg:r)"
        if state is State.DENIED:
            return f"run as root or with CAP_SYSLOG in the host's user namespace ({self._restricted()})"
        return ""

    def _restricted(self) -> str:
        try:
            restrict = read_once(f"{self.roots.proc}/sys/kernel/dmesg_restrict").decode().strip()
        except (OSError, UnicodeDecodeError):
            restrict = "unknown"
        return f"kernel.dmesg_restrict is {restrict}"

    def _picked_up(self, log: Kmsg, stamps: Stamps, report: Report) -> Reader:
        """A reader that begins after what an earlier life told, in this boot or the one before.

        It is given the whole ring anyhow: the lines of a report may lie on both sides of that point.
        """
        if stamps.asleep_ns:
            stamps.woke(_last_wake_us(log))
        known = decode(self.bookmark.read())
        if known is None:
            return Reader(stamps)
        if known.boot != self._boot:
            self._told = -1
            self._tell_boot(known, report)
            return Reader(stamps)
        self._told = known.sequence
        stamps.resume(known.offset_ns, known.stamp_us)
        return Reader(stamps, (known.sequence, known.stamp_us))

    def _tell_boot(self, known: Position, report: Report) -> None:
        booted_ns = self.timeline.from_boottime(0)
        reason = "the host restarted; what the kernel log held then is gone"
        since_ns = min(self.timeline.from_wall(known.wall_ns), booted_ns)
        report(Gap(source=NAME, time_ns=booted_ns, since_ns=since_ns, reason=reason))
        report(HostState(source=NAME, time_ns=booted_ns, state="boot"))

    def _take(
        self, log: Kmsg, reader: Reader, stamps: Stamps, report: Report, stop: Stop, waited: bool
    ) -> None:
        """Read all that is there now."""
        for number, record in enumerate(_records(log)):
            if waited and number == 0:
                stamps.arrived(record.stamp_us)
            elif number % _TURN == 0:
                stamps.seen(record.stamp_us)
                if stop.is_set():
                    return
            self._tell(reader.feed(record), report)

    def _tell(self, found: Iterable[tuple[int, Evidence]], report: Report) -> None:
        for sequence, evidence in found:
            if sequence > self._told:
                self._fresh = True
                report(evidence)

    def _save(self, reader: Reader, stamps: Stamps, soon: bool) -> None:
        """Remember how far we are: at once after telling something, else now and then."""
        now_ns = self.timeline.now()
        last = reader.last
        if last is None or reader or last.sequence == self._saved:
            return
        if not soon and not self._fresh and now_ns - self._saved_ns < _SAVE_NS:
            return
        wall_ns = self.timeline.to_wall(now_ns)
        self._told = self._saved = last.sequence
        self._saved_ns, self._fresh = now_ns, False
        position = Position(self._boot, last.sequence, last.stamp_us, stamps.offset_ns, wall_ns)
        self.bookmark.write(encode(position))


def _records(log: Kmsg) -> Iterator[Record]:
    for data in log.read():
        if (record := parse(data)) is not None:
            yield record


def _last_sequence(log: Kmsg) -> int:
    last = max((record.sequence for record in _records(log)), default=-1)
    log.rewind()
    return last


def _last_wake_us(log: Kmsg) -> int:
    """The stamp of the last line that tells of waking up; 0 where the log holds none."""
    woken = [record.stamp_us for record in _records(log) if record.text == _WOKE]
    log.rewind()
    return woken[-1] if woken else 0
